#include "training/optimizers/schedule.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numbers>

#include "core/base/error.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::schedule_test {

using doctest::Approx;

namespace {
Approx near(double value) { return Approx(value).epsilon(1e-13); }
}  // namespace

TEST_CASE("a constant rate is constant") {
  const Schedule schedule({.peak = 0.3});
  for (const std::int64_t step : {0, 1, 1000000}) CHECK(schedule.learning_rate(step) == 0.3);
}

TEST_CASE("the warm-up climbs linearly and reaches the full rate with its last step") {
  const Schedule schedule({.peak = 0.8, .warmup_steps = 4});
  CHECK(schedule.learning_rate(0) == near(0.2));
  CHECK(schedule.learning_rate(1) == near(0.4));
  CHECK(schedule.learning_rate(3) == 0.8);
  CHECK(schedule.learning_rate(4) == 0.8);
}

TEST_CASE("step decay multiplies by gamma every so many steps, counted from step 0") {
  const Schedule schedule({.peak = 1, .warmup_steps = 2, .decay = StepDecay{.every = 3, .gamma = 0.1}});
  CHECK(schedule.learning_rate(0) == 0.5);
  CHECK(schedule.learning_rate(2) == 1);
  CHECK(schedule.learning_rate(3) == near(0.1));
  CHECK(schedule.learning_rate(5) == near(0.1));
  CHECK(schedule.learning_rate(9) == near(0.001));
}

TEST_CASE("cosine falls from the peak after the warm-up to the floor at the end") {
  const Schedule schedule(
      {.peak = 1.1, .warmup_steps = 10, .decay = CosineDecay{.steps = 110, .floor = 0.1}});
  CHECK(schedule.learning_rate(0) == near(0.11));
  CHECK(schedule.learning_rate(9) == near(1.1));
  CHECK(schedule.learning_rate(10) == near(1.1));
  CHECK(schedule.learning_rate(60) == near(0.6));
  CHECK(schedule.learning_rate(85) == near(0.1 + 0.5 * (1 - std::numbers::sqrt2 / 2)));
  CHECK(schedule.learning_rate(110) == 0.1);
  CHECK(schedule.learning_rate(5000) == 0.1);
}

TEST_CASE("cosine without decaying steps left ends at the floor") {
  const Schedule schedule({.peak = 1, .warmup_steps = 5, .decay = CosineDecay{.steps = 5, .floor = 0}});
  CHECK(schedule.learning_rate(4) == 1);
  CHECK(schedule.learning_rate(5) == 0);
}

TEST_CASE("one-cycle rises, stands at the peak once, and falls to its end at the last step") {
  const Schedule schedule(
      {.peak = 1,
       .decay = OneCycle{.steps = 21, .rising = 0.5238095238095238, .start_divisor = 4, .end_divisor = 100}});
  CHECK(schedule.learning_rate(0) == near(0.25));
  CHECK(schedule.learning_rate(5) == near(0.625));  // half way up
  CHECK(schedule.learning_rate(10) == near(1));
  CHECK(schedule.learning_rate(15) == near((1 + 0.0025) / 2));
  CHECK(schedule.learning_rate(20) == near(0.0025));
  CHECK(schedule.learning_rate(300) == near(0.0025));
}

TEST_CASE("one-cycle of very few steps is finite and ends low") {
  for (std::int64_t steps = 1; steps <= 5; ++steps) {
    for (const double rising : {0.0, 0.3, 1.0}) {
      const Schedule schedule({.peak = 1, .decay = OneCycle{.steps = steps, .rising = rising}});
      for (std::int64_t step = 0; step < steps + 2; ++step) {
        CHECK(schedule.learning_rate(step) > 0);
        CHECK(schedule.learning_rate(step) <= 1);
      }
    }
  }
}

TEST_CASE("options outside their range are named") {
  const auto text = [](Schedule::Options options) { return user_error([&] { Schedule schedule(options); }); };
  const std::string start = "the learning-rate schedule has ";
  CHECK(text({.peak = 0}) == start + "peak = 0; it must be a number > 0");
  CHECK(text({.peak = std::numeric_limits<double>::quiet_NaN()}) ==
        start + "peak = nan; it must be a number > 0");
  CHECK(text({.warmup_steps = -1}) == start + "warmup_steps = -1; it must be a whole number >= 0");
  CHECK(text({.decay = StepDecay{.every = 0}}) == start + "every = 0; it must be a whole number >= 1");
  CHECK(text({.decay = StepDecay{.gamma = 2}}) == start + "gamma = 2; it must be a number > 0 and at most 1");
  CHECK(text({.decay = CosineDecay{.steps = 0}}) == start + "steps = 0; it must be a whole number >= 1");
  CHECK(text({.peak = 1, .decay = CosineDecay{.steps = 9, .floor = 2}}) ==
        start + "floor = 2; it must be a number from 0 to the peak");
  CHECK(text({.warmup_steps = 10, .decay = CosineDecay{.steps = 9}}) ==
        start + "warmup_steps = 10; it must be at most the 9 steps of the run");
  CHECK(text({.decay = OneCycle{.rising = 1.5}}) == start + "rising = 1.5; it must be a number from 0 to 1");
  CHECK(text({.decay = OneCycle{.start_divisor = 0}}) ==
        start + "start_divisor = 0; it must be a number > 0");
  CHECK(text({.decay = OneCycle{.end_divisor = -1}}) == start + "end_divisor = -1; it must be a number > 0");
  CHECK(text({.warmup_steps = 1, .decay = OneCycle{.steps = 9}}) ==
        start + "warmup_steps = 1; it must be 0 with one-cycle, which warms up by itself");
}

TEST_CASE("a negative step is our mistake") {
  CHECK_THROWS_AS(Schedule({.peak = 1}).learning_rate(-1), InternalError);
}

}  // namespace plexaura::testing::schedule_test
