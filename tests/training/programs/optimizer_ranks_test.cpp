// Tests an Optimizer on several ranks.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/values.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "training/programs/optimizer.h"

namespace plexaura::testing::optimizer_ranks_test {

namespace {

constexpr std::int64_t samples = 8;

Tensor batch_of(std::uint64_t seed) {
  Random random{seed};
  return make({DType::float64, {samples, 3}}, between(-1, 1), random);
}

// Returns the rows of one of `ranks` ranks.
Tensor part_of(const Tensor& whole, int rank, int ranks) {
  const std::int64_t count = samples / ranks;
  Tensor part({DType::float64, {count, 3}});
  std::copy_n(whole.as<double>().begin() + 3 * count * rank, 3 * count, part.as<double>().begin());
  return part;
}

// One rank of a linear model with dropout and a buffer.
struct Rank {
  Rank(Collective& ranks, Strategy* strategy, OptimizerOptions options, std::uint64_t seed = 5)
      : count(samples / ranks.size()),
        backend(open_backend(test_backend().info().name)),
        store(make_store(seed)) {
    options.ranks = strategy == nullptr ? nullptr : &ranks;
    options.strategy = strategy;
    optimizer = std::make_unique<Optimizer>(loss(), store, *backend, options);
  }

  static ParameterStore make_store(std::uint64_t seed) {
    ParameterStore made({{"w", {DType::float64, {3, 2}}, ParameterRole::trainable, Initialiser::ones()},
                         {"seen", {DType::float64, {3}}, ParameterRole::buffer, Initialiser::zeros()}});
    Random random{seed};
    made.write("w", make({DType::float64, {3, 2}}, between(-1, 1), random));
    return made;
  }

  LossOutputs loss() {
    const Node x = graph.input("x", {DType::float64, {count, 3}});
    const Node seen = graph.buffer("seen", {DType::float64, {3}});
    graph.update(seen, seen * 0.5 + mean(x, {.axes = {0}}) * 0.5);
    const Node out = matmul(dropout(x, {.p = 0.25}), graph.parameter("w", {DType::float64, {3, 2}})) - 1;
    return {.loss = mean(square(out)),
            .metrics = {{.name = "mean", .mean = mean(out)},
                        {.name = "above", .sum = sum(cast(gt(out, -1), DType::float64))}}};
  }

  std::int64_t count;
  std::shared_ptr<Backend> backend;
  ParameterStore store;
  Graph graph;
  std::unique_ptr<Optimizer> optimizer;
};

using Numbers = std::vector<double>;

using MakeStep = std::function<double(Optimizer&, const std::function<Tensor(std::uint64_t)>&, int)>;

double whole_step(Optimizer& optimizer, const std::function<Tensor(std::uint64_t)>& part, int step) {
  return optimizer.step({{"x", part(static_cast<std::uint64_t>(step))}});
}

// Adds up the gradients of two batches, and limits them.
double step_by_calls(Optimizer& optimizer, const std::function<Tensor(std::uint64_t)>& part, int step) {
  double loss = 0;
  for (const int batch : {2 * step, 2 * step + 1})
    loss += optimizer.gradients({{"x", part(static_cast<std::uint64_t>(batch))}});
  loss += optimizer.clip_by_value(0.5);
  loss += optimizer.clip_by_norm(0.25);
  optimizer.update();
  return loss;
}

// Returns the losses, metrics and weights of some steps on each rank, which are the same on all.
Numbers run(int size, const OptimizerOptions& options, int steps, const MakeStep& make_step = whole_step) {
  std::mutex mutex;
  std::vector<Numbers> all;
  ThreadRanks(size).run([&](Collective& ranks) {
    SummingStrategy strategy(ranks);
    Rank rank(ranks, size == 1 ? nullptr : &strategy, options);
    Numbers mine;
    const auto part = [&](std::uint64_t seed) { return part_of(batch_of(seed), ranks.rank(), size); };
    for (int step = 1; step <= steps; ++step) {
      mine.push_back(make_step(*rank.optimizer, part, step));
      for (const char* metric : {"mean", "above"}) mine.push_back(rank.optimizer->metric(metric));
    }
    for (const char* name : {"w", "seen"})
      for (const double value : rank.store.read(name).to_doubles()) mine.push_back(value);
    const std::lock_guard lock(mutex);
    all.push_back(mine);
  });
  for (const Numbers& each : all) CHECK(each == all[0]);
  return all[0];
}

}  // namespace

TEST_CASE("a loop of two ranks makes the steps of one rank with all of their samples") {
  for (const OptimizerOptions& options :
       {OptimizerOptions{.optimizer = {.momentum = 0.9, .weight_decay = 0.1}, .learning_rate = 0.1},
        OptimizerOptions{.optimizer = {.kind = OptimizerSpec::rmsprop, .max_gradient_norm = 0.5}},
        OptimizerOptions{.optimizer = {.kind = OptimizerSpec::adagrad}, .learning_rate = 0.1, .seed = 7}}) {
    CAPTURE(optimizer_name(options.optimizer));
    for (const auto make_step : {whole_step, step_by_calls}) {
      CAPTURE(make_step == step_by_calls);
      const Numbers alone = run(1, options, 5, make_step);
      for (const int size : {2, 4}) {
        const Numbers together = run(size, options, 5, make_step);
        REQUIRE(together.size() == alone.size());
        for (std::size_t i = 0; i < alone.size(); ++i)
          CHECK(together[i] == doctest::Approx(alone[i]).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("gradients that fail on one rank are dropped on all, and whole steps may follow") {
  const Tensor sound = Tensor::of<double>({4, 3}, std::vector<double>(12, 1));
  const Tensor bad =
      Tensor::of<double>({4, 3}, std::vector<double>(12, std::numeric_limits<double>::infinity()));
  const Tensor short_one = Tensor::of<double>({2}, {1, 2});
  ThreadRanks(2).run([&](Collective& ranks) {
    SummingStrategy strategy(ranks);
    Rank rank(ranks, &strategy, {.optimizer = {.momentum = 0.9}});
    Optimizer& train = *rank.optimizer;
    const Tensor weights = rank.store.read("w");
    const auto fails = [&](const Tensor& mine, const char* words) {
      train.gradients({{"x", sound}});
      const Tensor seen = rank.store.read("seen");
      const std::string text = user_error([&] {
        train.gradients({{"x", ranks.rank() == 1 ? mine : sound}});
      });
      CHECK(text.find(words) != std::string::npos);
      CHECK(rank.store.read("w") == weights);
      CHECK(rank.store.read("seen") == seen);
      CHECK(user_error([&] { train.update(); }).starts_with("Optimizer::update: there are no gradients"));
    };
    fails(bad, "the loss of step 1 is nan: training diverged");
    fails(short_one, "the input 'x' is float64[4,3] and was fed float64[2]");
    CHECK(std::isfinite(train.step({{"x", sound}})));
    train.gradients({{"x", sound}});
    train.update();
    CHECK(train.steps() == 2);
  });
}

TEST_CASE("ranks that have made other calls since the last update are refused") {
  ThreadRanks(2).run([&](Collective& ranks) {
    SummingStrategy strategy(ranks);
    Rank rank(ranks, &strategy, {});
    Optimizer& train = *rank.optimizer;
    const Tensor weights = rank.store.read("w");
    const auto error_after = [&](const std::function<void()>& call) {
      train.gradients({{"x", part_of(batch_of(1), ranks.rank(), 2)}});
      if (ranks.rank() == 1) call();
      const std::string text = user_error([&] { train.update(); });
      CHECK(rank.store.read("w") == weights);
      train.drop_gradients();
      return text;
    };
    CHECK(error_after([&] { train.clip_by_norm(0.5); })
              .ends_with("the calls since the last update are 1 of gradients(), clip_by_norm(0.5) on rank 1, "
                         "and 1 of gradients() on rank 0; make the same calls on all ranks"));
    CHECK(error_after([&] { train.drop_gradients(); }).find("0 of gradients() on rank 1") !=
          std::string::npos);
  });
}

TEST_CASE("a batch after a limit that only one rank has set is refused on all ranks") {
  std::mutex mutex;
  std::vector<std::string> texts;
  ThreadRanks(2).run([&](Collective& ranks) {
    SummingStrategy strategy(ranks);
    Rank rank(ranks, &strategy, {});
    const Tensor part = part_of(batch_of(1), ranks.rank(), 2);
    rank.optimizer->gradients({{"x", part}});
    if (ranks.rank() == 1) rank.optimizer->clip_by_norm(0.5);
    const std::string text = user_error([&] { rank.optimizer->gradients({{"x", part}}); });
    const std::lock_guard lock(mutex);
    texts.push_back(text);
  });
  REQUIRE(texts.size() == 2);
  for (const std::string& text : texts)
    CHECK(text.find("the gradients of this step were limited") != std::string::npos);
}

TEST_CASE("a batch that fails on one rank fails on all, and changes nothing") {
  const double infinite = std::numeric_limits<double>::infinity();
  const Tensor sound = Tensor::of<double>({4, 3}, std::vector<double>(12, 1));
  const Tensor bad = Tensor::of<double>({4, 3}, std::vector<double>(12, infinite));
  std::mutex mutex;
  std::vector<std::string> texts;
  ThreadRanks(2).run([&](Collective& ranks) {
    SummingStrategy strategy(ranks);
    Rank rank(ranks, &strategy, {.optimizer = {.momentum = 0.9}});
    rank.optimizer->step({{"x", sound}});
    const Tensor weights = rank.store.read("w");
    const Tensor seen = rank.store.read("seen");
    const auto fails = [&](const Tensor& mine) {
      const std::string text = user_error([&] {
        rank.optimizer->step({{"x", ranks.rank() == 1 ? mine : sound}});
      });
      CHECK(rank.store.read("w") == weights);
      CHECK(rank.store.read("seen") == seen);
      CHECK(rank.optimizer->steps() == 1);
      const std::lock_guard lock(mutex);
      texts.push_back(text);
    };
    fails(bad);
    fails(Tensor::of<double>({2}, {1, 2}));
    CHECK(std::isfinite(rank.optimizer->step({{"x", sound}})));
    CHECK(rank.optimizer->steps() == 2);
  });
  const auto count = [&](const std::string& words) {
    return std::ranges::count_if(
        texts, [&](const std::string& text) { return text.find(words) != std::string::npos; });
  };
  CHECK(texts.size() == 4);
  CHECK(count("the loss of step 2 is nan: training diverged") == 2);
  CHECK(count("the input 'x' is float64[4,3] and was fed float64[2]") == 2);
}

TEST_CASE("two ranks that save and go on have the bits of ranks that never stopped, and one plateau") {
  const TemporaryFolder folder;
  const OptimizerOptions options{
      .optimizer = {.kind = OptimizerSpec::adam},
      .learning_rate = Schedule({.peak = 0.1, .decay = Plateau{.factor = 0.5, .patience = 0}})};
  ThreadRanks(2).run([&](Collective& ranks) {
    const auto steps = [&](Rank& rank, int first, int last) {
      for (int step = first; step <= last; ++step)
        rank.optimizer->step({{"x", part_of(batch_of(static_cast<std::uint64_t>(step)), ranks.rank(), 2)}});
    };
    SummingStrategy strategy(ranks);
    Rank whole(ranks, &strategy, options);
    steps(whole, 1, 3);
    whole.optimizer->observe(1);
    whole.optimizer->observe(ranks.rank() == 0 ? 1.5 : 0.75);  // their mean is no improvement
    CHECK(whole.optimizer->learning_rate() == 0.05);
    whole.optimizer->save(folder.path());
    steps(whole, 4, 6);
    SummingStrategy other(ranks);
    Rank second(ranks, &other, options);
    REQUIRE(second.optimizer->resume(folder.path()));
    CHECK(second.optimizer->learning_rate() == 0.05);
    CHECK(second.optimizer->steps() == 3);
    steps(second, 4, 6);
    for (const char* name : {"w", "seen"}) CHECK(second.store.read(name) == whole.store.read(name));
  });
}

TEST_CASE("a checkpoint of ranks holds the state of their strategies") {
  // Has a number of its own on each rank, as a compression has gradients that it owes, and one that all ranks share.
  class Owing final : public SummingStrategy, public KeptState {
   public:
    Owing(Collective& ranks, double owed) : SummingStrategy(ranks), owed_(owed) {}
    StrategyParts parts() override { return {.gradients = this, .state = this}; }
    std::vector<StrategyState> state() const override {
      return {{"owed", Tensor::scalar(owed_), true}, {"agreed", Tensor::scalar(5.0)}};
    }
    void take_state(std::vector<StrategyState> state) override {
      for (const StrategyState& part : state) taken[part.name] = part.value.as<double>()[0];
    }
    std::map<std::string, double> taken;

   private:
    double owed_;
  };
  const TemporaryFolder folder;
  ThreadRanks(2).run([&](Collective& ranks) {
    Owing saving(ranks, ranks.rank() + 1.0);
    const Rank first(ranks, &saving, {});
    first.optimizer->save(folder.path());
    Owing resuming(ranks, 0);
    Rank second(ranks, &resuming, {});
    REQUIRE(second.optimizer->resume(folder.path()));
    CHECK(resuming.taken == std::map<std::string, double>{{"owed", ranks.rank() + 1.0}, {"agreed", 5}});
  });
  ThreadRanks(4).run([&](Collective& ranks) {
    Owing resuming(ranks, 0);
    Rank rank(ranks, &resuming, {});
    REQUIRE(rank.optimizer->resume(folder.path()));
    CHECK(resuming.taken == std::map<std::string, double>{{"agreed", 5}});
  });
}

TEST_CASE("what ranks cannot do is refused on all of them") {
  class Local final : public SummingStrategy {
   public:
    using SummingStrategy::SummingStrategy;
    StrategyParts parts() override { return {.gradients = this, .scope = GradientScope::local}; }
  };
  ThreadRanks(2).run([&](Collective& ranks) {
    SummingStrategy strategy(ranks);
    Local local(ranks);
    const auto number = static_cast<std::uint64_t>(ranks.rank());
    CHECK(
        user_error([&] {
          Rank rank(ranks, &strategy, {}, number);
        }).find("rank 1 begins with other weights than rank 0; make the stores of all ranks with one seed") !=
        std::string::npos);
    CHECK(user_error([&] { Rank rank(ranks, &local, {}); }).find("an Optimizer needs a strategy that sums") !=
          std::string::npos);
    Rank rank(ranks, &strategy, {});
    ParameterStore store = Rank::make_store(1);
    Graph graph;
    const Node loss = sum(graph.parameter("w", {DType::float64, {3, 2}}));
    CHECK(user_error([&] {
            Optimizer optimizer({.loss = loss}, store, *rank.backend, {.ranks = &ranks});
          }).find("OptimizerOptions has 2 ranks and no strategy") != std::string::npos);
    CHECK(user_error([&] {
            Optimizer optimizer({.loss = loss}, store, *rank.backend, {.strategy = &strategy});
          }).starts_with("OptimizerOptions has a strategy and no ranks"));
    ParameterStore narrow({{"w", {DType::float32, {2}}, ParameterRole::trainable, Initialiser::ones()}});
    narrow.set_types(ArenaTypes::mixed(DType::float16));
    Graph of_narrow;
    const Node narrow_loss = sum(of_narrow.parameter("w", {DType::float32, {2}}));
    CHECK(user_error([&] {
            Optimizer optimizer({.loss = narrow_loss}, narrow, *rank.backend,
                                {.ranks = &ranks, .strategy = &strategy});
          }).find("an Optimizer of several ranks cannot adapt the loss scale") != std::string::npos);
    SingleProcess alone;
    Optimizer optimizer({.loss = loss}, store, *rank.backend,
                        {.ranks = &alone});  // as make_strategy() returns null
    CHECK(std::isfinite(optimizer.step({})));
  });
}

TEST_CASE("a mistake of one rank before the first call of all ranks is told to the others") {
  const TemporaryFolder folder;
  std::mutex mutex;
  std::vector<std::string> texts;
  ThreadRanks(2).run([&](Collective& ranks) {
    SummingStrategy strategy(ranks);
    const bool is_wrong = ranks.rank() == 1;
    const auto keep = [&](const std::string& text) {
      const std::lock_guard lock(mutex);
      texts.push_back(text);
    };
    keep(user_error([&] { Rank rank(ranks, &strategy, {.parameters = {is_wrong ? "v" : "w"}}); }));
    Rank rank(ranks, &strategy, {});
    rank.optimizer->step({{"x", part_of(batch_of(1), ranks.rank(), 2)}});
    rank.optimizer->save(folder / "all");
    keep(user_error([&] { rank.optimizer->resume(folder / (is_wrong ? "none" : "all")); }));
  });
  const auto count = [&](const std::string& words) {
    return std::ranges::count_if(
        texts, [&](const std::string& text) { return text.find(words) != std::string::npos; });
  };
  CHECK(count("'v'") == 2);
  CHECK(count("rank 1 has found no checkpoint in ") == 2);
  CHECK(count("and rank 0 step 1; resume from one folder that all ranks can read") == 2);
}

TEST_CASE("ranks with other options are refused before they train apart") {
  ThreadRanks(2).run([&](Collective& ranks) {
    SummingStrategy strategy(ranks);
    const bool is_other = ranks.rank() == 1;
    const auto error_of = [&](const OptimizerOptions& options) {
      return user_error([&] { Rank rank(ranks, &strategy, options); });
    };
    const Schedule rates[] = {Schedule({.peak = 0.1, .decay = Plateau{.patience = 3}}),
                              Schedule({.peak = 0.1, .decay = Plateau{.patience = 4}})};
    CHECK(error_of({.learning_rate = rates[is_other ? 1 : 0]})
              .ends_with("rank 1 has another OptimizerOptions::learning_rate than rank 0; give the same on "
                         "all ranks"));
    CHECK(error_of({.seed = ranks.rank()}).find("another OptimizerOptions::seed") != std::string::npos);
    CHECK(error_of({.watch = is_other}).find("another OptimizerOptions::watch") != std::string::npos);
    CHECK(error_of({.optimizer = {.momentum = is_other ? 0.5 : 0.9}})
              .find("another OptimizerOptions::optimizer") != std::string::npos);
  });
}

TEST_CASE("an Optimizer of several ranks is the only one of its store") {
  ThreadRanks(2).run([&](Collective& ranks) {
    SummingStrategy strategy(ranks);
    const auto backend = open_backend(test_backend().info().name);
    const TensorType one{DType::float64, {1}};
    ParameterStore store({{"a", one, ParameterRole::trainable, Initialiser::ones()},
                          {"b", one, ParameterRole::trainable, Initialiser::ones()}});
    Graph graph;
    const Node loss = sum(graph.parameter("a", one) * graph.parameter("b", one));
    Optimizer first({.loss = loss}, store, *backend,
                    {.parameters = {"a"}, .ranks = &ranks, .strategy = &strategy});
    CHECK(user_error([&] {
            Optimizer second({.loss = loss}, store, *backend, {.parameters = {"b"}});
          }).find("must be the only one of its store") != std::string::npos);
    CHECK(first.step({}) == 1);
  });
}

}  // namespace plexaura::testing::optimizer_ranks_test
