// The state of a strategy is kept in checkpoints for resumed runs. The state that all ranks share is rank
// 0's. The state of single ranks is restored if the number of ranks is the same.

#include <array>
#include <doctest/doctest.h>

#include "tests/contracts/ranks/rows_run.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/error_text.h"
#include "tests/support/leaving_collective.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"

namespace plexaura::testing::strategy_state_test {

namespace {

// Counts its steps, and keeps its own number.
class Counting final : public SummingStrategy, public WeightExchange, public KeptState {
 public:
  using SummingStrategy::SummingStrategy;
  StrategyParts parts() override { return {.gradients = this, .weights = this, .state = this}; }
  void after_update() override {
    ++steps;
    own = 10.0 * static_cast<double>(steps) + ranks_.rank();
  }
  std::vector<StrategyState> state() const override {
    Tensor two(TensorType{DType::float64, {2}});
    two.as<double>()[1] = own;
    std::vector<StrategyState> state{{"steps", Tensor::scalar(steps)}, {second_name, Tensor::scalar(true)}};
    if (ranks_.rank() < keepers) state.push_back({"own.value", two, true});
    return state;
  }
  void take_state(std::vector<StrategyState> state) override {
    CHECK(border_ != nullptr);
    for (const StrategyState& part : state) {
      if (part.name == "steps") steps = part.value.as<std::int64_t>()[0];
      if (part.name == "own.value") own = part.value.as<double>()[1];
      CHECK(part.of_rank == (part.name == "own.value"));
    }
    taken = state.size();
  }

  std::int64_t steps = 0;
  double own = 0;
  std::size_t taken = 0;
  std::string second_name = "flag";
  int keepers = 3;  // number of ranks with their own state
};

// Every rank trains for itself.
class Apart final : public Strategy {
 public:
  StrategyParts parts() override { return {.weights = &no_exchange_, .scope = GradientScope::local}; }

 private:
  WeightExchange no_exchange_;
};

// Returns the weights and the momentum of each rank.
std::array<std::vector<double>, 3> train_apart(int count, const std::filesystem::path& folder,
                                               std::int64_t steps) {
  std::array<std::vector<double>, 3> ends;
  ThreadRanks(count).run([&](Collective& ranks) {
    RowsRun run;
    Apart strategy;
    Trainer trainer(run.parts(20, ranks, &strategy), {.batch_size = 6,
                                                      .epochs = 9,
                                                      .steps = steps,
                                                      .optimizer = {.momentum = 0.9},
                                                      .learning_rate = 0.5,
                                                      .output = folder});
    if (!folder.empty()) trainer.resume();
    trainer.run();
    std::vector<double>& end = ends.at(static_cast<std::size_t>(ranks.rank()));
    end = run.store.read("weight").to_doubles();
    for (const double value : run.store.read_state(0, "weight").to_doubles()) end.push_back(value);
  });
  return ends;
}

struct End {
  std::int64_t steps = 0;
  double own = 0;
  std::size_t taken = 0;
};

std::array<End, 3> train(int count, const std::filesystem::path& folder, std::int64_t steps,
                         const std::string& second_name = "flag", int keepers = 3) {
  std::array<End, 3> ends;
  ThreadRanks(count).run([&](Collective& ranks) {
    RowsRun run;
    Counting strategy(ranks);
    strategy.second_name = second_name;
    strategy.keepers = keepers;
    Trainer trainer(run.parts(20, ranks, &strategy),
                    {.batch_size = 6, .epochs = 9, .steps = steps, .output = folder});
    trainer.resume();
    trainer.run();
    ends.at(static_cast<std::size_t>(ranks.rank())) = {strategy.steps, strategy.own, strategy.taken};
  });
  return ends;
}

// Counts the bytes that this rank receives from other ranks, unless it is rank 0.
class CountingCollective final : public ForwardingCollective {
 public:
  using ForwardingCollective::ForwardingCollective;
  void broadcast(std::byte* data, std::size_t bytes, int root, std::string_view what) override {
    if (root != rank()) got += bytes;
    ForwardingCollective::broadcast(data, bytes, root, what);
  }
  void bring_to_0(std::byte* data, std::size_t bytes, int from, std::string_view what) override {
    if (from == rank()) brought += bytes;
    CHECK((data == nullptr) == (rank() != 0 && rank() != from));
    ForwardingCollective::bring_to_0(data, bytes, from, what);
  }

  std::size_t got = 0;
  std::size_t brought = 0;
};

}  // namespace

TEST_CASE("what each rank has of its own goes to rank 0 alone, in pieces between which all meet") {
  constexpr std::int64_t elements = 1 << 20;
  ThreadRanks(3).run([&](Collective& ranks) {
    CountingCollective counting(ranks);
    Tensor own(TensorType{DType::float64, {elements}});
    own.as<double>()[elements - 1] = ranks.rank();
    const SavedStrategy saved = gather_strategy_state(counting, {{"own", own, true}});
    CHECK(counting.got < 1000);
    CHECK((counting.brought >= own.bytes()) == (ranks.rank() != 0));
    CHECK(saved.size() == (ranks.rank() == 0 ? 3 : 0));
    if (ranks.rank() != 0) return;
    for (std::size_t rank = 0; rank < 3; ++rank)
      CHECK(saved[rank].second.as<double>()[elements - 1] == static_cast<double>(rank));
  });
}

TEST_CASE("a strategy's state goes on with the run: that of all, and that of each rank") {
  const TemporaryFolder folder;
  train(3, folder.path(), 5);
  const auto same = train(3, folder.path(), 5);  // no step is left to do
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(same.at(rank).taken == 3);
    CHECK(same.at(rank).steps == 5);
    CHECK(same.at(rank).own == 50.0 + static_cast<double>(rank));
  }
  CHECK(train(3, folder.path(), 7)[2].steps == 7);
}

TEST_CASE("with another number of ranks each begins with what all have in common alone") {
  for (const int before : {2, 3}) {
    const TemporaryFolder folder;
    train(before, folder.path(), 5);
    const int now = 5 - before;
    const auto ends = train(now, folder.path(), 5);
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(now); ++rank) {
      CHECK(ends.at(rank).steps == 5);
      CHECK(ends.at(rank).own == 0);
    }
  }
}

TEST_CASE("what each rank has of its own may be nothing on the last ones") {
  const TemporaryFolder folder;
  train(3, folder.path(), 5, "flag", 2);
  CHECK(train(2, folder.path(), 5, "flag", 2)[1].own == 0);
  const auto same = train(3, folder.path(), 5, "flag", 2);
  CHECK(same[1].own == 51);
  CHECK(same[2].taken == 2);
}

TEST_CASE("ranks that lose one while they save begin their strategies anew") {
  struct Rank {
    RowsRun run;
    std::unique_ptr<Counting> strategy;
    std::unique_ptr<Trainer> trainer;
  };
  const TemporaryFolder folder;
  std::array<Rank, 3> all;
  CHECK_THROWS_AS(ThreadRanks(3).run([&](Collective& ranks) {
    Rank& mine = all.at(static_cast<std::size_t>(ranks.rank()));
    LeavingCollective leaving(ranks, ranks.rank() == 2 ? "saving a checkpoint" : "");
    mine.strategy = std::make_unique<Counting>(leaving);
    mine.trainer =
        std::make_unique<Trainer>(mine.run.parts(20, leaving, mine.strategy.get()),
                                  TrainerOptions{.batch_size = 6, .steps = 2, .output = folder.path()});
    try {
      mine.trainer->run();
    } catch (const Gone&) {
    }
  }),
                  RankLost);
  ThreadRanks(2).run([&](Collective& ranks) {
    Rank& mine = all.at(static_cast<std::size_t>(ranks.rank()));
    const auto old = std::exchange(mine.strategy, std::make_unique<Counting>(ranks));
    mine.trainer->regroup(ranks, mine.strategy.get());
    CHECK(mine.trainer->run().steps == 2);
    CHECK(mine.strategy->taken == 0);
  });
}

TEST_CASE("ranks that train for themselves go on from weights and states of their own") {
  const TemporaryFolder folder;
  const auto stopped = train_apart(3, folder.path(), 5);
  CHECK(stopped[1] != stopped[0]);
  CHECK(train_apart(3, folder.path(), 5) == stopped);
  CHECK(train_apart(3, folder.path(), 9) == train_apart(3, {}, 9));
}

TEST_CASE("with another number of ranks those that train for themselves begin with what rank 0 had") {
  const TemporaryFolder folder;
  const auto stopped = train_apart(3, folder.path(), 5);
  const auto two = train_apart(2, folder.path(), 5);
  CHECK(two[0] == stopped[0]);
  CHECK(two[1] == stopped[0]);
}

TEST_CASE("where more ranks begin than there were, those that are new begin with what rank 0 had") {
  const TemporaryFolder folder;
  const auto stopped = train_apart(2, folder.path(), 5);
  const auto three = train_apart(3, folder.path(), 5);
  CHECK(three[0] == stopped[0]);
  CHECK(three[1] == stopped[1]);
  CHECK(three[2] == stopped[0]);
}

TEST_CASE("two parts of a strategy's state have two names") {
  const TemporaryFolder folder;
  CHECK(user_error([&] { train(2, folder.path(), 1, "steps"); }) ==
        "the strategy names a part of its state 'steps'; give each part a name of its own, of letters and "
        "digits of ASCII, '_', '-' and dots");
}

}  // namespace plexaura::testing::strategy_state_test
