#include "training/loop/learning_rate_sweep.h"

#include <array>
#include <cmath>
#include <csignal>
#include <doctest/doctest.h>
#include <mutex>
#include <string>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "tests/training/scarce_staging.h"
#include "tests/training/signalling_samples.h"
#include "tests/training/small_run.h"

namespace plexaura::testing::learning_rate_sweep_test {

namespace {

std::vector<SweptRate> with_losses(std::initializer_list<double> smoothed) {
  std::vector<SweptRate> rates;
  for (const double loss : smoothed)
    rates.push_back({.learning_rate = static_cast<double>(rates.size() + 1), .smoothed = loss});
  return rates;
}

LearningRateSweep sweep(ParameterStore& store, const TrainerOptions& options, const SweepRange& range = {}) {
  return sweep_learning_rates({small_model, store, test_backend(), points(30), points(9, 100)}, options,
                              range);
}

}  // namespace

TEST_CASE("the suggestion is the rate at which the loss falls fastest before its minimum") {
  CHECK(suggested_rate(with_losses({5, 5, 4, 2, 1.5, 1.4, 3, 1.45, 9})) == 3);
  CHECK(suggested_rate(with_losses({5, 4, 1})) == 2);
  CHECK(suggested_rate(with_losses({-1, -1.5, -4, -4.1, 7})) == 2);
}

TEST_CASE("there is no suggestion where the loss does not fall") {
  CHECK(!suggested_rate(with_losses({})));
  CHECK(!suggested_rate(with_losses({5, 1})));
  CHECK(!suggested_rate(with_losses({5, 5, 5, 5})));
  CHECK(!suggested_rate(with_losses({5, 4.9, 4.8, 6, 9})));
  CHECK(!suggested_rate(with_losses({5, 6, 7, 8})));
}

TEST_CASE("a sweep makes the steps of a run with its rates, and restores the weights bit for bit") {
  SmallRun run;
  const std::vector<double> before = weights(run.store);
  const LearningRateSweep found = sweep(run.store, momentum(), {.first = 1e-3, .last = 1, .steps = 31});
  CHECK(weights(run.store) == before);
  REQUIRE(found.rates.size() == 31);
  CHECK(found.rates.front().learning_rate == doctest::Approx(1e-3).epsilon(1e-12));
  CHECK(found.rates[10].learning_rate == doctest::Approx(1e-2).epsilon(1e-12));
  CHECK(found.rates.back().learning_rate == doctest::Approx(1).epsilon(1e-12));
  double sum = 0;
  for (std::size_t i = 6; i <= 14; ++i) sum += found.rates[i].loss;
  CHECK(found.rates[10].smoothed == doctest::Approx(sum / 9));
  CHECK(found.suggestion == suggested_rate(found.rates));
  CHECK(found.suggestion.has_value());
  // A second sweep finds the same, and a run trains as if there had been none.
  CHECK(sweep(run.store, momentum(), {.first = 1e-3, .last = 1, .steps = 31}).rates[30].loss ==
        found.rates[30].loss);
  run.train(momentum(), points(30), points(9, 100));
  SmallRun plain;
  plain.train(momentum(), points(30), points(9, 100));
  CHECK(weights(run.store) == weights(plain.store));
  // The first losses are those of a run with such rates.
  TrainerOptions slow = momentum();
  slow.learning_rate = 1e-3;
  SmallRun other;
  other.train(slow, points(30), nullptr);
  CHECK(other.seen.steps[0].loss == found.rates[0].loss);
  CHECK(other.seen.steps[1].loss == found.rates[1].loss);
}

TEST_CASE("a sweep ends when the loss has grown, or is not finite, without an error") {
  SmallRun run;
  const std::vector<double> before = weights(run.store);
  CHECK(sweep(run.store, momentum(), {.first = 1, .last = 1e9, .steps = 40}).rates.size() < 40);
  CHECK(weights(run.store) == before);
  TrainerOptions options = momentum();
  options.optimizer.momentum = 0;
  CHECK(sweep(run.store, options, {.first = 1e300, .last = 1e308, .steps = 40}).rates.size() < 40);
  CHECK(weights(run.store) == before);
}

TEST_CASE("a sweep writes nothing, and leaves out what follows the validation") {
  const TemporaryFolder folder;
  SmallRun run;
  TrainerOptions options = momentum();
  options.output = folder / "run";
  options.save_every = 1;
  options.goal = EpochGoal{.metric = "accuracy", .mode = EpochGoal::Mode::max, .patience = 1};
  options.optimizer.ema = 0.9;
  CHECK(sweep(run.store, options).rates.size() > 50);
  CHECK(!std::filesystem::exists(folder / "run"));
}

TEST_CASE("a signal ends the sweep, which then suggests nothing") {
  SmallRun run;
  const std::vector<double> before = weights(run.store);
  const auto samples = std::make_shared<SignallingSamples>(points(30), 300);
  const LearningRateSweep found = sweep_learning_rates({small_model, run.store, test_backend(), samples},
                                                       momentum(), {.first = 1e-3, .last = 1, .steps = 60});
  CHECK(found.signal == SIGTERM);
  CHECK(found.rates.size() < 60);
  CHECK(suggested_rate(found.rates).has_value());
  CHECK(!found.suggestion.has_value());
  CHECK(weights(run.store) == before);
}

TEST_CASE("an error of one rank in keeping the weights ends all ranks") {
  std::array<std::string, 2> errors;
  ThreadRanks(2).run([&](Collective& ranks) {
    const auto inner = open_backend(test_backend().info().name);
    ScarceStaging backend(*inner, false);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    const TrainerParts parts{small_model, store, backend, points(30), nullptr, &ranks, &strategy};
    Trainer(parts, momentum());  // places the store
    backend.is_used_up = ranks.rank() == 1;
    errors.at(static_cast<std::size_t>(ranks.rank())) =
        user_error([&] { sweep_learning_rates(parts, momentum()); });
  });
  CHECK(errors[0] == "rank 1: this rank has no memory for copies");
  CHECK(errors[1] == "this rank has no memory for copies");
}

TEST_CASE("all ranks find the same") {
  SmallRun run;
  const LearningRateSweep one = sweep(run.store, momentum());
  std::mutex mutex;
  std::vector<LearningRateSweep> found;
  ThreadRanks(2).run([&](Collective& ranks) {
    const auto backend = open_backend(test_backend().info().name);
    ParameterStore store = small_store();
    SummingStrategy strategy(ranks);
    LearningRateSweep mine = sweep_learning_rates(
        {small_model, store, *backend, points(30), nullptr, &ranks, &strategy}, momentum());
    const std::lock_guard lock(mutex);
    CHECK(weights(store) == weights(run.store));
    found.push_back(std::move(mine));
  });
  for (const LearningRateSweep& theirs : found) {
    CHECK(theirs.suggestion == one.suggestion);
    REQUIRE(theirs.rates.size() == one.rates.size());
    CHECK(theirs.rates[40].loss == doctest::Approx(one.rates[40].loss).epsilon(1e-9));
  }
}

TEST_CASE("ranges without rates are refused") {
  const auto refusal = [](const SweepRange& range) {
    SmallRun run;
    return user_error([&] { sweep(run.store, momentum(), range); });
  };
  CHECK(
      refusal({.first = 1, .last = 1}) ==
      "a sweep of 100 learning rates from 1 to 1 is empty; give two steps or more, and a last rate above the "
      "first, which is above 0");
  for (const SweepRange& range : {SweepRange{.first = 0}, SweepRange{.first = std::nan("")},
                                  SweepRange{.last = INFINITY}, SweepRange{.steps = 1}})
    CHECK(refusal(range).find("is empty") != std::string::npos);
}

}  // namespace plexaura::testing::learning_rate_sweep_test
