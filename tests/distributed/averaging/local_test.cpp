#include "distributed/averaging/local.h"

#include <array>
#include <atomic>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "tests/distributed/strategies/iris_run.h"
#include "tests/distributed/strategies/moved_ranks.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::local_test {

namespace {

std::vector<Numbers> behind(const LocalOptions& options, const std::vector<StepPlace>& steps,
                            const std::vector<std::int64_t>& samples = {4, 4}) {
  return values_behind([&](Collective& ranks) { return std::make_unique<Local>(ranks, options); }, steps,
                       samples);
}

const Settings plain_sgd{"distributed.strategy=local", "training.epochs=8", "training.precision=float64",
                         "training.batch_size=7", "training.optimizer.momentum=0"};

}  // namespace

TEST_CASE("local: weights and buffers are averaged every few steps, frozen parameters never") {
  const auto seen = behind({.every = 2}, {{1}, {2}, {3}, {4}});
  CHECK(seen == std::vector<Numbers>{{8, 8, 8}, {12, 12, 8}, {8, 8, 8}, {12, 12, 8}});
}

TEST_CASE("local: weights are averaged at the end of an epoch, and the steps counted from there") {
  const auto seen = behind({.every = 2}, {{1, 0, true}, {2, 1}, {3, 1}});
  CHECK(seen == std::vector<Numbers>{{12, 12, 8}, {8, 8, 8}, {12, 12, 8}});
}

TEST_CASE("local: an average weighs each rank by its samples") {
  CHECK(behind({.every = 1}, {{1}}, {3, 1})[0] == Numbers{10, 10, 8});
  CHECK(behind({.every = 1}, {{1}}, {0, 2})[0] == Numbers{16, 16, 8});
  CHECK(behind({.every = 2}, {{1}, {2}}, {0, 0})[1] == Numbers{0, 0, 8});
}

// The velocity is v = m v + d, and the weight moves by r (d + m v). It moves from 0 by 0.5 (12 + 0.5 12) = 9;
// after that d = 3 and v = 9.
TEST_CASE("local: an outer optimizer takes the average change of the weights, and not of the buffers") {
  const LocalOptions outer{.every = 1, .outer_learning_rate = 0.5, .outer_momentum = 0.5};
  CHECK(behind(outer, {{1}, {2}}) == std::vector<Numbers>{{9, 12, 8}, {9 + 0.5 * (3 + 0.5 * 9), 12, 8}});
  CHECK(behind({.every = 1, .outer_learning_rate = 2}, {{1}})[0] == Numbers{24, 12, 8});
}

TEST_CASE("local: in the first epochs every step is followed by a plain average") {
  const LocalOptions options{.every = 3, .first_epochs = 1, .outer_learning_rate = 0.5};
  const auto seen = behind(options, {{1, 0}, {2, 0, true}, {3, 1}, {4, 1}, {5, 1}});
  CHECK(seen == std::vector<Numbers>{{12, 12, 8}, {12, 12, 8}, {8, 8, 8}, {8, 8, 8}, {12, 12, 8}});
}

TEST_CASE(
    "local: fragments of the weights are averaged in turn, buffers with the last one, and all where an epoch "
    "ends") {
  const LocalOptions halves{.every = 2, .fragments = 2};
  const std::vector<StepPlace> steps{{1}, {2}, {3}, {4, 0, true}, {5, 1}};
  const auto weights =
      weights_behind([&](Collective& ranks) { return std::make_unique<Local>(ranks, halves); }, steps);
  CHECK(weights == std::vector<Numbers>{{12, 8}, {8, 12}, {12, 8}, {12, 12}, {12, 8}});
  CHECK(behind(halves, {{1}, {2}}) == std::vector<Numbers>{{12, 8, 8}, {8, 12, 8}});
}

// Step 1 counts only for the second fragment: (1 x 8 + 3 x 16) / 4. The ranks have 1 and 3 samples in that
// step, and twice as many in two steps.
TEST_CASE("local: the average of a fragment weighs each rank by its samples since the one before") {
  const LocalOptions halves{.every = 4, .fragments = 2};
  CHECK(behind(halves, {{1}, {2}, {3}, {4}}, {1, 3}) ==
        std::vector<Numbers>{{8, 8, 8}, {14, 8, 8}, {8, 8, 8}, {8, 14, 8}});
}

TEST_CASE("local: fragments are late one after the other") {
  const LocalOptions late{.every = 4, .fragments = 2, .delay = 1};
  const auto make = [&](Collective& ranks) { return std::make_unique<Local>(ranks, late); };
  CHECK(weights_behind(make, {{1}, {2}, {3}, {4}, {5}}) ==
        std::vector<Numbers>{{8, 8}, {8, 8}, {12, 8}, {8, 8}, {8, 12}});
  CHECK(behind(late, {{1}, {2}, {3}, {4}, {5}})[4] == Numbers{8, 8, 8});
}

namespace {

// Sends half of what is owed.
class Half final : public Compression {
 public:
  explicit Half(Collective& ranks) : ranks_(ranks) {}
  void exchange(std::size_t, std::span<float> owed, std::span<float> sums, std::string_view what) override {
    for (std::size_t i = 0; i < owed.size(); ++i) sums[i] = owed[i] /= 2;
    ranks_.sum(DType::float32, std::as_writable_bytes(sums).data(), std::ssize(sums), what);
  }
  std::vector<Crossing> crossings(std::size_t, std::int64_t, int) const override { return {}; }

 private:
  Collective& ranks_;
};

}  // namespace

// The ranks bring 8 and 16, and half is sent, so both move to 6. From there they move by 2 and 10, and add
// what they owe: 2 + 4 and 10 + 8.
TEST_CASE("local: what does not cross of a change comes with the next one, buffers cross whole") {
  const MakeStrategy make = [](Collective& ranks) {
    return std::make_unique<Local>(ranks, LocalOptions{.every = 1}, false, std::make_unique<Half>(ranks));
  };
  CHECK(values_behind(make, {{1}, {2}}, {4, 4}, 0, DType::float32) ==
        std::vector<Numbers>{{6, 12, 8}, {6 + (6.0 + 18) / 4, 12, 8}});
}

// After the first average, of four steps, the ranks owe 4 and 8. They move by 2 and 10 in the next period, of
// a single step, and what they owe is fully added: 2 + 4 and 10 + 8.
TEST_CASE("local: what does not cross counts as much in a shorter period") {
  const MakeStrategy make = [](Collective& ranks) {
    return std::make_unique<Local>(ranks, LocalOptions{.every = 4}, false, std::make_unique<Half>(ranks));
  };
  const auto seen = values_behind(make, {{1}, {2}, {3}, {4}, {5, 0, true}}, {4, 4}, 0, DType::float32);
  CHECK(seen[3] == Numbers{6, 12, 8});
  CHECK(seen[4] == Numbers{6 + (6.0 + 18) / 4, 12, 8});
}

// In float32 each of these counts would be rounded, and so would the mean.
TEST_CASE("local: samples are counted exactly, however many there are") {
  const std::int64_t many = (std::int64_t{1} << 53) + 2;
  const auto seen = values_behind(
      [](Collective& ranks) { return std::make_unique<Local>(ranks, LocalOptions{.every = 1}); }, {{1}},
      {many - 4, 4}, 0, DType::float32);
  CHECK(seen[0] == Numbers{8, 8, 8});
}

// The ranks contribute 16 and 0, so that the average is 8. Meanwhile rank 0 has moved from 16 to 0. Its own
// change added to the average, 8 - 16, would be below 0.
TEST_CASE("local: a running variance stays above 0 where a rank goes on while an average is made") {
  ThreadRanks(2).run([&](Collective& ranks) {
    Local strategy(ranks, {.every = 2, .delay = 1});
    MovedRank rank(strategy);
    const bool is_first = ranks.rank() == 0;
    const std::array<double, 3> to{16, 16, 0};
    for (std::int64_t step = 1; step <= 3; ++step)
      rank.step({.number = step, .samples = 4}, is_first ? to.at(static_cast<std::size_t>(step - 1)) : 0);
    CHECK(rank.values()[1] == 0);
    rank.step({.number = 4, .ends_epoch = true, .samples = 4}, is_first ? 2 : 4);
    CHECK(rank.values()[1] == 3);
  });
}

TEST_CASE("local: a checkpoint with counts that no run writes is refused") {
  SingleProcess alone;
  const auto part = [](const char* name, const std::vector<std::int64_t>& numbers) {
    return StrategyState{name, Tensor::of<std::int64_t>(Shape{std::ssize(numbers)}, numbers)};
  };
  for (const StrategyState& damaged :
       {part("exchange", {2, 1, 7, 2}), part("exchange", {2, 1}), part("exchange", {2, 1, -1, 2}),
        part("steps", {}), part("clock", {-3}), StrategyState{"means", Tensor::scalar(1.5F)}}) {
    Local strategy(alone, {.every = 2, .delay = 1});
    const MovedRank rank(strategy);
    CHECK_THROWS_AS(strategy.take_state({damaged}), UserError);
  }
}

TEST_CASE("local: an outer optimizer has a velocity for each fragment") {
  const LocalOptions outer{.every = 2, .outer_momentum = 0.5, .fragments = 2};
  const auto make = [&](Collective& ranks) { return std::make_unique<Local>(ranks, outer); };
  const Numbers first{12 + 0.5 * 12, 8};
  const Numbers second{8, 12 + 0.5 * 12};
  const double third = 18 + (12 - 18) + 0.5 * (0.5 * 12 + (12 - 18));
  CHECK(weights_behind(make, {{1}, {2}, {3}}) == std::vector<Numbers>{first, second, {third, 8}});
}

// The exchange begins after step 2, in which rank 0 moved by 8, and its result is applied after step 3, in
// which rank 0 moved back. So 12 - 8 is added to the weights. The buffer keeps this rank's value.
TEST_CASE("local: what a rank learns while an average is made stays in its weights") {
  const LocalOptions late{.every = 2, .delay = 1};
  CHECK(behind(late, {{1}, {2}, {3}, {4}, {5}}) ==
        std::vector<Numbers>{{8, 8, 8}, {8, 8, 8}, {12, 8, 8}, {8, 8, 8}, {8 + 0 + 4, 8, 8}});
}

// The rank subtracts rank 0's part from the average that it adds, so that its weights do not count that part
// twice.
TEST_CASE(
    "local: a rank that begins with the weights of rank 0 while an average is made has brought what rank 0 "
    "has") {
  std::vector<StrategyState> shared;
  const LocalOptions late{.every = 2, .delay = 1};
  ThreadRanks(2).run([&](Collective& ranks) {
    Local strategy(ranks, late);
    MovedRank rank(strategy);
    for (std::int64_t step = 1; step <= 2; ++step)
      rank.step({.number = step, .samples = 4}, ranks.rank() == 0 ? 8 : 16);
    for (StrategyState& part : strategy.state())
      if (ranks.rank() == 0 && !part.of_rank) shared.push_back(std::move(part));
  });
  SingleProcess alone;
  Local strategy(alone, late);
  MovedRank rank(strategy);
  strategy.take_state(std::move(shared));
  rank.step({.number = 3, .samples = 4}, 8);
  CHECK(rank.values() == Numbers{12, 8, 8});
}

TEST_CASE("local: an average under way is taken where the epoch ends, and another one is made there") {
  const LocalOptions late{.every = 3, .delay = 2};
  const std::vector<StepPlace> steps{{1}, {2}, {3}, {4, 0, true}, {5, 1}, {6, 1}, {7, 1}, {8, 1}};
  const auto first =
      values_behind([&](Collective& ranks) { return std::make_unique<Local>(ranks, late); }, steps);
  const auto second = values_behind([&](Collective& ranks) { return std::make_unique<Local>(ranks, late); },
                                    steps, {4, 4}, 1);
  CHECK(first[3] == Numbers{12, 12, 8});
  CHECK(second[3] == Numbers{12, 12, 16});
  CHECK(first[6] == Numbers{8, 8, 8});
}

// The average of steps 3 and 4 weighs rank 0 by 2 and rank 1 by 6.
TEST_CASE("local: samples that a rank has while an average is made count for the next one") {
  ThreadRanks(2).run([&](Collective& ranks) {
    Local strategy(ranks, {.every = 2, .delay = 1});
    MovedRank rank(strategy);
    const double to = ranks.rank() == 0 ? 8 : 16;
    for (std::int64_t step = 1; step <= 5; ++step)
      rank.step({.number = step, .samples = ranks.rank() == 1 && step == 3 ? 5 : 1}, to);
    const double average = 12 + (2 * (8.0 - 12) + 6 * (16.0 - 12)) / 8;
    CHECK(rank.values() == Numbers{to + ((average - 12) - (to - 12)), to, to});
  });
}

TEST_CASE("local: in the first epochs, and where an epoch ends, nothing is late") {
  const LocalOptions late{.every = 2, .first_epochs = 1, .delay = 1};
  CHECK(behind(late, {{1, 0}, {2, 0, true}, {3, 1, true}}) ==
        std::vector<Numbers>{{12, 12, 8}, {12, 12, 8}, {12, 12, 8}});
}

namespace {

// A collective of two ranks, of which the other one takes part in no sum.
class Endless final : public Collective {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void broadcast(std::byte*, std::size_t, int, std::string_view) override {}
  std::vector<std::string> gather_all(const std::string& mine, std::string_view) override {
    return {mine, mine};
  }
  void sum(DType, std::byte*, std::int64_t, std::string_view) override {
    is_summing = true;
    while (!is_interrupted) std::this_thread::yield();
    throw DeviceError("interrupted");
  }
  void interrupt_waits(bool on) override { is_interrupted = is_interrupted || on; }

  std::atomic<bool> is_summing = false;
  std::atomic<bool> is_interrupted = false;
};

}  // namespace

TEST_CASE("local: a run that ends with an error does not wait for the average under way") {
  Endless ranks;
  Local strategy(ranks, {.every = 2, .delay = 1});
  MovedRank rank(strategy);
  rank.step({1}, 8);
  rank.step({2}, 8);
  while (!ranks.is_summing) std::this_thread::yield();
  strategy.give_up();
  CHECK(ranks.is_interrupted);
}

TEST_CASE("local: where a rank is lost in an average, either all others take that or none has") {
  const MakeStrategy make = [](Collective& ranks) {
    return std::make_unique<Local>(ranks, LocalOptions{.every = 2}, true);
  };
  const LossOfLast sum{.steps = {{1}, {2}}, .call = "the weights after step 2", .behind = {{3}, {4}}};
  LossOfLast telling = sum;
  telling.call = "which ranks have the mean of the weights after step 2";
  LossOfLast passed = telling;
  passed.one_has_passed = true;
  for (const std::size_t rank : {0, 1}) {
    const double own = rank == 0 ? 8 : 16;
    const std::vector<Numbers> of_two{{12, 12, own}, {own, own, own}, {12, 12, own}};
    CHECK(values_without_last(make, sum).at(rank) == of_two);
    CHECK(values_without_last(make, telling).at(rank) == of_two);
    CHECK(values_without_last(make, passed).at(rank) ==
          std::vector<Numbers>{{16, 16, own}, {own, own, own}, {12, 12, own}});
  }
}

// After step 3 they count one step. The rank that has not made it averages with the other one.
TEST_CASE("local: those that are left average when the rank that is ahead would") {
  const MakeStrategy make = [](Collective& ranks) {
    return std::make_unique<Local>(ranks, LocalOptions{.every = 2}, true);
  };
  const LossOfLast ahead{.steps = {{1}, {2}}, .ahead = {{3}}, .behind = {{4}}};
  CHECK(values_without_last(make, ahead)[0] ==
        std::vector<Numbers>{{8, 8, 8}, {16 - 16.0 / 3, 16 - 16.0 / 3, 8}});
  CHECK(values_without_last(make, ahead)[1] ==
        std::vector<Numbers>{{16, 16, 16}, {16 - 16.0 / 3, 16 - 16.0 / 3, 16}});
  LossOfLast ends_epoch{.steps = {{1}, {2}, {3}}, .behind = {{4}}};
  ends_epoch.steps[2].ends_epoch = true;
  ends_epoch.call = "the weights after step 3";
  CHECK(values_without_last(make, ends_epoch)[1] == std::vector<Numbers>{{12, 12, 16}, {16, 16, 16}});
}

// The first average, of three ranks, is 16, so the velocity becomes 16. With m = 0.5 the weight moves from 0 by
// 16 + 8 = 24. The next average, of two ranks, differs by 12 - 24 = -12, and the velocity becomes -12 + 8.
TEST_CASE("local: those that are left keep the anchor and the velocity of the outer optimizer") {
  const MakeStrategy make = [](Collective& ranks) {
    return std::make_unique<Local>(ranks, LocalOptions{.every = 1, .outer_momentum = 0.5}, true);
  };
  const LossOfLast loss{.steps = {{1}}, .behind = {{2}}};
  CHECK(values_without_last(make, loss)[0] ==
        std::vector<Numbers>{{24, 16, 8}, {24 - 12 + 0.5 * (-12 + 0.5 * 16), 12, 8}});
  const MakeStrategy rare = [](Collective& ranks) {
    return std::make_unique<Local>(ranks, LocalOptions{.every = 3, .outer_learning_rate = 0.5}, true);
  };
  const LossOfLast within{.steps = {{1}, {2}}, .behind = {{3}}};
  CHECK(values_without_last(rare, within)[1] == std::vector<Numbers>{{16, 16, 16}, {6, 12, 16}});
}

// The average of weights then equals an average of gradients, also if these are sums over micro-batches. In
// the last step of an epoch only one rank has a sample.
TEST_CASE("local: averaged after every step, ranks follow one rank that trains alone") {
  const auto alone = train_iris(1, plain_sgd);
  for (const int ranks : {2, 4})
    for (const IrisEnd& end : train_iris(
             ranks, with(plain_sgd, {"distributed.every=1", ranks == 2 ? "training.micro_batches=2"
                                                                       : "training.micro_batches=1"}))) {
      CHECK(distance(end.values, alone[0].values) < 1e-12);
      CHECK(end.steps == alone[0].steps);
    }
}

TEST_CASE("local: learns the flowers as one rank does, and two runs have the same bits" *
          doctest::skip(sanitized)) {
  const Settings plain{"distributed.strategy=local"};
  const Settings outer{"distributed.every=5", "distributed.first_epochs=2",
                       "distributed.outer={learning_rate: 0.7, momentum: 0.3}"};
  const Settings late{"distributed.every=6", "distributed.fragments=2", "distributed.delay=2"};
  for (const int ranks : {2, 4})
    for (const Settings& settings : {Settings(), outer, late}) check_learns(ranks, with(plain, settings));
}

// Step 20 is within an epoch and between two averages. Each rank has its own momentum.
TEST_CASE("local: a resumed run ends as one that was never stopped") {
  const TemporaryFolder folder;
  const Settings settings{"distributed.strategy=local", "distributed.every=6",
                          "distributed.outer.momentum=0.5", "training.epochs=4"};
  const Settings saving = with(settings, {"output.dir=" + folder.path().string()});
  for (const std::int64_t stop : {20, 30}) {
    check_resumes(3, settings, stop);
    const auto stopped = train_iris(3, saving, stop);
    CHECK((stopped[1].weights == stopped[0].weights) == (stop == 30));  // after the end of the second epoch
    CHECK(train_iris(3, saving, stop, true)[1].weights == stopped[1].weights);
  }
}

// After step 18 an average of the first fragment is being exchanged, and after step 21 one of the second.
// Step 30 ends an epoch.
TEST_CASE("local: a resumed run takes the average that was under way") {
  for (const std::int64_t stop : sanitized ? std::vector{20, 22} : std::vector{18, 19, 20, 21, 22, 30})
    check_resumes(3,
                  {"distributed.strategy=local", "distributed.every=6", "distributed.fragments=2",
                   "distributed.delay=2", "training.epochs=4"},
                  stop);
}

// The resumed run drops the average that is being exchanged after step 22.
TEST_CASE("local: a resumed run may have other fragments and another delay") {
  const std::vector<std::string> common{"distributed.strategy=local", "distributed.every=6",
                                        "training.epochs=4"};
  for (const char* fragments : {"1", "3"})
    for (const char* delay : {"0", "1"}) {
      const TemporaryFolder folder;
      const auto settings = with(common, {"output.dir=" + (folder / "run").string()});
      train_iris(3, with(settings, {"distributed.fragments=2", "distributed.delay=2"}), 22);
      const auto ends = train_iris(3,
                                   with(settings, {std::string("distributed.fragments=") + fragments,
                                                   std::string("distributed.delay=") + delay}),
                                   {}, true);
      CHECK(ends[0].steps == 60);
      for (const IrisEnd& end : ends) CHECK(end.weights == ends[0].weights);
    }
}

// An epoch of 15 steps has averages after steps 8 and 15, or averages of one half each after steps 4, 8 and
// 12 and of everything at its end.
TEST_CASE("local: fragments and a delay show in what is exchanged") {
  const Settings settings{"distributed.strategy=local", "distributed.every=8", "training.epochs=1"};
  const auto whole = train_iris(2, settings)[0].exchange.value();
  const auto halves = train_iris(2, with(settings, {"distributed.fragments=2"}))[0].exchange.value();
  CHECK(halves.bytes > whole.bytes);
  CHECK(halves.bytes < 2 * whole.bytes);
  CHECK_FALSE(halves.overlaps);
  const auto late = train_iris(2, with(settings, {"distributed.delay=4"}))[0].exchange.value();
  CHECK(late.bytes == whole.bytes);
  CHECK(late.overlaps);
  CHECK(late.waited_seconds > 0);  // at the end of the epoch
  CHECK(late.waited_seconds <= late.seconds);
}

TEST_CASE("local: averages of compressed changes learn the flowers, with the same weights on all ranks" *
          doctest::skip(sanitized)) {
  const double alone = train_iris(1, {})[0].accuracy;
  for (const char* strategy : {"local", "elastic"})
    for (const char* compression : {"fp16", "bf16", "top-k"}) {
      CAPTURE(strategy);
      CAPTURE(compression);
      const Settings settings{
          std::string("distributed.strategy=") + strategy,
          std::string("distributed.compression=") + compression,
          compression == std::string("top-k") ? "distributed.compression_ratio=0.2" : "distributed.every=5"};
      check_learns(3, settings);
      const auto apart = train_iris({"a", "b", "b"}, settings);
      for (const IrisEnd& end : apart) CHECK(end.weights == apart[0].weights);
      CHECK(apart[0].accuracy >= alone - 0.04);
    }
}

TEST_CASE("local: where all elements cross, the weights are those without compression") {
  const Settings settings{"distributed.strategy=local", "training.epochs=2", "distributed.fragments=2"};
  const auto plain = train_iris(2, settings);
  const auto ends =
      train_iris(2, with(settings, {"distributed.compression=top-k", "distributed.compression_ratio=1"}));
  CHECK(ends[0].weights == plain[0].weights);
}

// The checkpoint has what each rank owes.
TEST_CASE("local: a resumed run with compressed changes ends as one that was never stopped") {
  const Settings settings{
      "distributed.strategy=local",        "distributed.every=6", "distributed.compression=top-k",
      "distributed.compression_ratio=0.1", "training.epochs=4",   "distributed.delay=3"};
  check_resumes({"a", "a", "a"}, settings, 20);
  check_resumes({"a", "b", "b"}, settings, 20);
}

}  // namespace plexaura::testing::local_test
