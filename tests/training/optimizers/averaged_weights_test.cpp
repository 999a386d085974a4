#include "training/optimizers/averaged_weights.h"

#include <array>
#include <doctest/doctest.h>
#include <filesystem>
#include <mutex>
#include <stdexcept>

#include "backends/registry.h"
#include "core/params/module.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "tests/training/small_run.h"
#include "tests/training/tiny_store.h"
#include "training/checkpoints/checkpoint_directory.h"

namespace plexaura::testing::averaged_weights_test {

namespace {

constexpr double ema = 0.8;
constexpr std::int64_t momentum_and_average = 2;

TrainerOptions averaging() {
  TrainerOptions options = momentum();
  options.optimizer.ema = ema;
  return options;
}

// Returns all averages of a small_store().
std::vector<double> averages(const ParameterStore& store) {
  REQUIRE(store.states() == momentum_and_average);
  std::vector<double> all = store.read_state(1, "first").to_doubles();
  for (const double value : store.read_state(1, "second").to_doubles()) all.push_back(value);
  return all;
}

// Returns the weights after so many steps of a run without averages.
std::vector<double> weights_after(std::int64_t steps) {
  TrainerOptions options = momentum();
  options.steps = steps;
  SmallRun run;
  run.train(options, points(30), nullptr);
  return weights(run.store);
}

// Each rank updates by the gradients of its own samples.
class OwnUpdates final : public SummingStrategy, public WeightExchange {
 public:
  using SummingStrategy::SummingStrategy;
  StrategyParts parts() override {
    return {.gradients = this, .weights = this, .scope = GradientScope::local};
  }
};

}  // namespace

TEST_CASE("weights and averages are exchanged and put back bit for bit") {
  const OptimizerSpec optimizer{.momentum = 0.9, .ema = ema};
  TinyStore tiny(1, DType::float32, momentum_and_average);
  tiny.store.write_state(1, "fc.weight", TinyStore::counting({DType::float32, {3, 17}}, 100));
  const std::uint64_t version = tiny.store.version();
  with_averages(tiny.store, optimizer, [&] {
    CHECK(tiny.weight() == 100);
    CHECK(tiny.store.read("fc.weight").to_doubles().back() == 150);
    CHECK(tiny.store.read("bn.mean").to_doubles() == std::vector<double>{1, 2});
    CHECK(tiny.state(0) == 1.5);
    CHECK(tiny.state(1) == 1);
    CHECK(tiny.store.version() > version);
  });
  CHECK(tiny.weight() == 1);
  CHECK(tiny.state(1) == 100);
  CHECK_THROWS_AS(with_averages(tiny.store, optimizer, [] { throw std::runtime_error("lost"); }),
                  std::runtime_error);
  CHECK(tiny.weight() == 1);
  with_averages(tiny.store, {.momentum = 0.9}, [&] { CHECK(tiny.weight() == 1); });
}

TEST_CASE("programs of 16 bits read the averages, too") {
  ParameterStore store({{"w", {DType::float32, Shape{2}}, ParameterRole::trainable, Initialiser::ones()}});
  store.set_types(ArenaTypes::mixed(DType::bfloat16));
  Placement placement;
  placement.types = store.types();
  placement.append("w", store.specs()[0].type, ParameterRole::trainable, Layout::row_major(1));
  store.place(placement, test_backend());
  store.require_states(1);
  const OptimizerSpec optimizer{.ema = ema};
  CHECK(!has_averages(store, optimizer));
  with_averages(store, optimizer, [&] { CHECK(store.read("w").to_doubles()[0] == 1); });
  store.write_state(0, "w", TinyStore::counting({DType::float32, {2}}, 8));
  CHECK(has_averages(store, optimizer));
  CHECK(!has_averages(store, {}));
  with_averages(store, optimizer, [&] { CHECK(store.read_shadow("w").to_doubles()[1] == 9); });
  CHECK(store.read_shadow("w").to_doubles()[1] == 1);
}

TEST_CASE("a run averages its weights after each update, and validates by the averages") {
  SmallRun run;
  run.train(averaging(), points(30), points(9, 100));
  REQUIRE(run.result.steps == 12);
  std::vector<double> expected = weights_after(1);
  for (std::int64_t step = 2; step <= run.result.steps; ++step) {
    const std::vector<double> now = weights_after(step);
    for (std::size_t i = 0; i < now.size(); ++i) expected[i] = ema * expected[i] + (1 - ema) * now[i];
  }
  const std::vector<double> found = averages(run.store);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  CHECK(weights(run.store) == weights_after(12));
  SmallRun plain;
  plain.train(momentum(), points(30), points(9, 100));
  CHECK(run.seen.epochs.back().train_loss == plain.seen.epochs.back().train_loss);
  CHECK(run.seen.epochs.back().val_loss != plain.seen.epochs.back().val_loss);
  SmallRun of_averages;
  for (const char* name : {"first", "second"}) of_averages.store.write(name, run.store.read_state(1, name));
  Trainer trainer({small_model, of_averages.store, test_backend(), points(30), points(9, 100)}, momentum());
  CHECK(trainer.validate().loss == run.seen.epochs.back().val_loss);
}

TEST_CASE("a run with averages validates its first weights before it has averages") {
  SmallRun run;
  Trainer trainer({small_model, run.store, test_backend(), points(30), points(9, 100)}, averaging());
  SmallRun plain;
  Trainer other({small_model, plain.store, test_backend(), points(30), points(9, 100)}, momentum());
  CHECK(trainer.validate().loss == other.validate().loss);
}

TEST_CASE("a checkpoint has the averages as weights, and a run goes on from it bit for bit") {
  SmallRun whole;
  whole.train(averaging(), points(30), points(9, 100));
  for (const std::int64_t stop : {1, 4, 6, 12}) {
    CAPTURE(stop);
    const TemporaryFolder folder;
    TrainerOptions options = averaging();
    options.output = folder / "run";
    options.steps = stop;
    SmallRun first;
    first.train(options, points(30), points(9, 100));
    CHECK(weights(first.store) == weights_after(stop));
    SmallRun used;
    const Metadata metadata =
        load_weights(*newest_checkpoint(folder / "run") / "weights.safetensors", used.store);
    CHECK(metadata.at(averaged_key) == "0.8");
    CHECK(weights(used.store) == averages(first.store));
    options.steps = std::nullopt;
    SmallRun second;
    Trainer trainer({small_model, second.store, test_backend(), points(30), points(9, 100)}, options);
    REQUIRE(trainer.resume());
    CHECK(weights(second.store) == weights(first.store));
    CHECK(averages(second.store) == averages(first.store));
    trainer.run(second.seen);
    CHECK(weights(second.store) == weights(whole.store));
    CHECK(averages(second.store) == averages(whole.store));
  }
}

TEST_CASE("a parameter that a resumed run freezes keeps its trained value, and not its average") {
  for (const std::int64_t stop : {1, 6}) {
    const TemporaryFolder folder;
    TrainerOptions options = averaging();
    options.output = folder / "run";
    options.steps = stop;
    SmallRun first;
    first.train(options, points(30), nullptr);
    std::vector<ParameterSpec> specs = small_store().specs();
    freeze(specs, "second");
    ParameterStore frozen(specs, 1);
    options.steps = std::nullopt;
    Trainer trainer({small_model, frozen, test_backend(), points(30)}, options);
    REQUIRE(trainer.resume());
    CHECK(weights(frozen) == weights(first.store));
    trainer.run();
    CHECK(frozen.read("second").to_doubles() == first.store.read("second").to_doubles());
    CHECK(frozen.read("first").to_doubles() != first.store.read("first").to_doubles());
  }
}

TEST_CASE("a run can be resumed with another training.ema, but neither with one more nor without") {
  const TemporaryFolder folder;
  const auto error_of = [&](const TrainerOptions& options) {
    SmallRun run;
    Trainer trainer({small_model, run.store, test_backend(), points(30)}, options);
    return user_error([&] { trainer.resume(); });
  };
  TrainerOptions options = averaging();
  options.output = folder / "run";
  SmallRun first;
  first.train(options, points(30), nullptr);
  options.optimizer.ema = 0.9;
  CHECK(error_of(options).empty());
  options.optimizer.ema = std::nullopt;
  CHECK(error_of(options).find(
            " was made with training.ema and now it is not given; give the same training.ema, or start from "
            "its weights with --weights") != std::string::npos);
  options.replace = true;
  SmallRun second;
  second.train(options, points(30), nullptr);
  options.optimizer.ema = ema;
  CHECK(error_of(options).find(
            " was made without training.ema and now it is given; remove training.ema, or start from its "
            "weights with --weights") != std::string::npos);
}

TEST_CASE("several ranks have the same averages as one") {
  SmallRun one;
  one.train(averaging(), points(30), points(9, 100));
  const std::vector<double> expected = averages(one.store);
  std::mutex mutex;
  std::vector<std::vector<double>> found;
  ThreadRanks(2).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    Trainer trainer({small_model, store, *backend, points(30), points(9, 100), &ranks, &strategy},
                    averaging());
    Recorder seen;
    trainer.run(seen);
    const std::lock_guard lock(mutex);
    CHECK(seen.epochs.back().val_loss == doctest::Approx(one.seen.epochs.back().val_loss).epsilon(1e-12));
    found.push_back(averages(store));
  });
  REQUIRE(found.size() == 2);
  CHECK(found[0] == found[1]);
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(found[0][i] == doctest::Approx(expected[i]).epsilon(1e-12));
}

TEST_CASE("averages are refused where ranks make updates of their own") {
  std::array<std::string, 2> errors;
  ThreadRanks(2).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    OwnUpdates strategy(ranks);
    errors.at(static_cast<std::size_t>(ranks.rank())) = user_error([&] {
      Trainer({small_model, store, *backend, points(30), nullptr, &ranks, &strategy}, averaging());
    });
  });
  CHECK(errors[0] ==
        "OptimizerSpec::ema, in YAML training.ema, averages the weights over updates, and with this strategy "
        "the ranks do not all make the same ones; leave it out, or choose the strategy allreduce");
  CHECK(errors[1] == "rank 0: " + errors[0]);
}

}  // namespace plexaura::testing::averaged_weights_test
