#include "training/optimizers/schedule.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numbers>
#include <vector>

#include "core/base/error.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::schedule_test {

using doctest::Approx;

namespace {
Approx near(double value) { return Approx(value).epsilon(1e-13); }

// Compares the rates of the first steps of a schedule with the peak 0.2.
void check_rates(const Schedule::Decay& decay, const std::vector<double>& expected) {
  const Schedule schedule({.peak = 0.2, .decay = decay});
  for (std::size_t step = 0; step < expected.size(); ++step)
    CHECK(schedule.learning_rate(static_cast<std::int64_t>(step)) == near(expected[step]));
}
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

TEST_CASE("a linear rate goes from its start to its end, and stays there") {
  const Schedule schedule({.peak = 2, .decay = LinearRate{.start = 0.25, .end = 0.75, .steps = 4}});
  CHECK(schedule.learning_rate(0) == near(0.5));
  CHECK(schedule.learning_rate(1) == near(0.75));
  CHECK(schedule.learning_rate(4) == near(1.5));
  CHECK(schedule.learning_rate(400) == near(1.5));
}

// The expected rates are those that torch.optim.lr_scheduler of PyTorch 2 computes with lr 0.2.
TEST_CASE("decays have the rates of PyTorch's") {
  // MultiStepLR(milestones=[2, 5], gamma=0.5)
  check_rates(MultiStepDecay{.milestones = {2, 5}, .gamma = 0.5}, {0.2, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05});
  check_rates(MultiStepDecay{.milestones = {1, 1}, .gamma = 0.5}, {0.2, 0.05});
  // ExponentialLR(gamma=0.9)
  check_rates(ExponentialDecay{.steps = 1, .gamma = 0.9}, {0.2, 0.18, 0.162, 0.1458});
  // PolynomialLR(total_iters=4, power=2)
  check_rates(PolynomialDecay{.steps = 4, .power = 2}, {0.2, 0.1125, 0.05, 0.0125, 0, 0});
  // CosineAnnealingWarmRestarts(T_0=3, eta_min=0.02)
  check_rates(CosineRestarts{.first = 3, .floor = 0.02}, {0.2, 0.155, 0.065, 0.2, 0.155, 0.065, 0.2});
  // CosineAnnealingWarmRestarts(T_0=2, T_mult=2, eta_min=0.02)
  check_rates(CosineRestarts{.first = 2, .growth = 2, .floor = 0.02},
              {0.2, 0.11, 0.2, 0.1736396103067893, 0.11, 0.04636038969321073, 0.2, 0.1931491579260158,
               0.1736396103067893, 0.1444415089128581, 0.11, 0.07555849108714194, 0.04636038969321073,
               0.026850842073984194, 0.2});
  // CyclicLR(base_lr=0.02, max_lr=0.2, step_size_up=2, step_size_down=3), in its three modes; gamma=0.9
  check_rates(Cyclic{.rising = 2, .falling = 3, .floor = 0.02},
              {0.02, 0.11, 0.2, 0.14, 0.08, 0.02, 0.11, 0.2, 0.14, 0.08, 0.02});
  check_rates(Cyclic{.rising = 2, .falling = 3, .floor = 0.02, .mode = Cyclic::triangular2},
              {0.02, 0.11, 0.2, 0.14, 0.08, 0.02, 0.065, 0.11, 0.08, 0.05, 0.02});
  check_rates(Cyclic{.rising = 2, .falling = 3, .floor = 0.02, .mode = Cyclic::exp_range, .gamma = 0.9},
              {0.02, 0.101, 0.1658, 0.10748, 0.059366, 0.02, 0.06782969, 0.106093442, 0.0716560652,
               0.04324522934, 0.02});
  // OneCycleLR(max_lr=0.2, total_steps=7, pct_start=0.4)
  check_rates(OneCycle{.steps = 7, .rising = 0.4},
              {0.008, 0.1206702250560253, 0.19888308709018238, 0.1623491307899526, 0.09252742053339501,
               0.0266955060377661, 8e-07});
}

TEST_CASE("an exponential decay of many steps has a part of the factor in each step") {
  check_rates(ExponentialDecay{.steps = 2, .gamma = 0.25}, {0.2, 0.1, 0.05, 0.025});
}

TEST_CASE("polynomial decay and cosines with restarts begin at the end of the warm-up") {
  const Schedule line({.peak = 1, .warmup_steps = 2, .decay = PolynomialDecay{.steps = 6}});
  for (const auto& [step, rate] : {std::pair{0, 0.5}, {1, 1.0}, {2, 1.0}, {3, 0.75}, {5, 0.25}, {6, 0.0}})
    CHECK(line.learning_rate(step) == near(rate));
  const Schedule waves({.peak = 1, .warmup_steps = 2, .decay = CosineRestarts{.first = 2}});
  for (const auto& [step, rate] : {std::pair{0, 0.5}, {1, 1.0}, {2, 1.0}, {3, 0.5}, {4, 1.0}, {5, 0.5}})
    CHECK(waves.learning_rate(step) == near(rate));
}

TEST_CASE("periods that grow beyond every step number do not overflow") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto rate = [](const Schedule::Decay& decay, std::int64_t step) {
    return Schedule({.peak = 1, .decay = decay}).learning_rate(step);
  };
  for (const std::int64_t growth : {std::int64_t{1}, std::int64_t{2}, std::int64_t{1} << 40}) {
    CHECK(rate(CosineRestarts{.first = 3, .growth = growth}, most) >= 0);
    CHECK(rate(CosineRestarts{.first = 3, .growth = growth}, most) <= 1);
  }
  CHECK(rate(Cyclic{.rising = most, .falling = most}, most / 2) == near(0.5));
}

// The expected rates are those of torch.optim.lr_scheduler: SequentialLR of LinearLR(start_factor=0.1, total_iters=5),
// CosineAnnealingLR(T_max=10, eta_min=0.02) and ExponentialLR(gamma=0.9), with milestones [5, 12] and lr 0.2.
TEST_CASE("a sequence has the rates of PyTorch's") {
  const Schedule schedule =
      Schedule::sequence({Schedule({.peak = 0.2, .decay = LinearRate{.start = 0.1, .end = 1, .steps = 5}}),
                          Schedule({.peak = 0.2, .decay = CosineDecay{.steps = 10, .floor = 0.02}}),
                          Schedule({.peak = 0.2, .decay = StepDecay{.every = 1, .gamma = 0.9}})},
                         {5, 12});
  const double expected[] = {0.020000000000000004,
                             0.05600000000000001,
                             0.09200000000000001,
                             0.128,
                             0.164,
                             0.2,
                             0.19559508646656384,
                             0.18281152949374527,
                             0.16290067270632258,
                             0.13781152949374528,
                             0.11000000000000001,
                             0.08218847050625475,
                             0.2,
                             0.18000000000000002,
                             0.16200000000000003,
                             0.14580000000000004};
  std::int64_t step = 0;
  for (const double rate : expected) CHECK(schedule.learning_rate(step++) == near(rate));
  const Schedule nested = Schedule::sequence({0.5, schedule}, {3});
  CHECK(nested.learning_rate(2) == 0.5);
  CHECK(nested.learning_rate(4) == schedule.learning_rate(1));
  CHECK(nested.peak() == 0.5);
  CHECK(Schedule::sequence({0.01, schedule, 0.1}, {3, 20}).peak() == 0.2);
  CHECK(Schedule(0.3).peak() == 0.3);
}

TEST_CASE("sequences with other milestones, or with a plateau, are refused") {
  const auto refusal = [](std::vector<Schedule> parts, std::vector<std::int64_t> milestones) {
    return user_error([&] { Schedule::sequence(std::move(parts), std::move(milestones)); });
  };
  CHECK(refusal({0.1, 0.2}, {}) ==
        "a sequence of 2 schedules has 0 milestones; give one between two schedules");
  CHECK(refusal({}, {}).starts_with("a sequence of 0 schedules"));
  CHECK(refusal({0.1, 0.2}, {0}).find("milestone = 0; it must be above 0") != std::string::npos);
  CHECK(refusal({0.1, 0.2, 0.3}, {5, 5}).find("milestone = 5; it must be above 5") != std::string::npos);
  CHECK(refusal({0.1, Schedule({.decay = Plateau{}})}, {5})
            .starts_with("a sequence of schedules has a Plateau"));
  const auto refuses = [](LinearRate rate) {
    return !user_error([&] { Schedule({.decay = rate}); }).empty();
  };
  CHECK(refuses({.start = 0}));
  CHECK(refuses({.end = 2}));
  CHECK(refuses({.steps = 0}));
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
  CHECK(text({.decay = MultiStepDecay{.milestones = {0}}}) ==
        start + "milestone = 0; it must be at least 1, as milestones are sorted and begin at 1");
  CHECK(text({.decay = MultiStepDecay{.milestones = {5, 4}}}) ==
        start + "milestone = 4; it must be at least 5, as milestones are sorted and begin at 1");
  CHECK(text({.decay = MultiStepDecay{.gamma = 0}}) ==
        start + "gamma = 0; it must be a number > 0 and at most 1");
  CHECK(text({.decay = ExponentialDecay{.steps = 0}}) == start + "steps = 0; it must be a whole number >= 1");
  CHECK(text({.decay = ExponentialDecay{.gamma = 1.1}}) ==
        start + "gamma = 1.1; it must be a number > 0 and at most 1");
  CHECK(text({.decay = PolynomialDecay{.steps = 0}}) == start + "steps = 0; it must be a whole number >= 1");
  CHECK(text({.decay = PolynomialDecay{.power = 0}}) == start + "power = 0; it must be a number > 0");
  CHECK(text({.warmup_steps = 10, .decay = PolynomialDecay{.steps = 9}}) ==
        start + "warmup_steps = 10; it must be at most the 9 steps of the run");
  CHECK(text({.decay = CosineRestarts{.first = 0}}) == start + "first = 0; it must be a whole number >= 1");
  CHECK(text({.decay = CosineRestarts{.growth = 0}}) == start + "growth = 0; it must be a whole number >= 1");
  CHECK(text({.peak = 1, .decay = CosineRestarts{.floor = 2}}) ==
        start + "floor = 2; it must be a number from 0 to the peak");
  CHECK(text({.decay = Cyclic{.rising = 0}}) == start + "rising = 0; it must be a whole number >= 1");
  CHECK(text({.decay = Cyclic{.falling = 0}}) == start + "falling = 0; it must be a whole number >= 1");
  CHECK(text({.decay = Cyclic{.floor = -1}}) == start + "floor = -1; it must be a number from 0 to the peak");
  CHECK(text({.decay = Cyclic{.mode = Cyclic::exp_range, .gamma = 2}}) ==
        start + "gamma = 2; it must be a number > 0 and at most 1");
  CHECK(text({.decay = Cyclic{.gamma = 0.5}}) ==
        start + "gamma = 0.5; it must be 1 for all modes but exp_range");
  CHECK(text({.warmup_steps = 1, .decay = Cyclic{}}) ==
        start + "warmup_steps = 1; it must be 0 with cyclic, which warms up by itself");
  CHECK(text({.warmup_steps = 1, .decay = OneCycle{.steps = 9}}) ==
        start + "warmup_steps = 1; it must be 0 with one-cycle, which warms up by itself");
}

TEST_CASE("a negative step is our mistake") {
  CHECK_THROWS_AS(Schedule({.peak = 1}).learning_rate(-1), InternalError);
}

}  // namespace plexaura::testing::schedule_test
