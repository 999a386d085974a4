#include "training/loop/observers.h"

#include <doctest/doctest.h>
#include <stdexcept>
#include <vector>

#include "tests/support/backend.h"
#include "tests/training/small_run.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::observers_test {

namespace {

struct Counting final : TrainingObserver {
  void step(const StepRecord&, std::int64_t) override { ++steps; }
  void epoch(const EpochRecord&) override { ++epochs; }
  int steps = 0;
  int epochs = 0;
};

struct Throwing final : TrainingObserver {
  void step(const StepRecord&, std::int64_t) override { throw std::runtime_error("no step"); }
  void epoch(const EpochRecord&) override { throw std::runtime_error("no epoch"); }
};

}  // namespace

TEST_CASE("an observer gets the record that another one has failed with, and then no step") {
  Throwing bad;
  Counting good;
  Observers observers;
  observers.set({bad, good});
  observers.step({}, 3);
  observers.step({}, 3);
  CHECK(good.steps == 1);
  CHECK_THROWS_WITH_AS(observers.check(), "no step", std::runtime_error);
  CHECK(observers.take_failure() != nullptr);
  CHECK(observers.take_failure() == nullptr);
  CHECK_THROWS_WITH_AS(observers.epoch({}), "no epoch", std::runtime_error);
  CHECK(good.epochs == 1);
}

TEST_CASE("a run has several observers") {
  ParameterStore store = small_store();
  Trainer trainer({.model = small_model, .store = store, .backend = test_backend(), .train = points(30)},
                  momentum());
  Counting first;
  Counting second;
  const TrainingResult result = trainer.run({first, second});
  CHECK(first.steps == result.steps);
  CHECK(second.steps == result.steps);
  CHECK(first.epochs == second.epochs);
  CHECK(second.epochs > 0);
}

}  // namespace plexaura::testing::observers_test
