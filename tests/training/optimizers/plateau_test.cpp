#include "training/optimizers/plateau.h"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "core/base/error.h"
#include "tests/support/error_text.h"
#include "training/optimizers/schedule.h"

namespace plexaura::testing::plateau_test {

namespace {

const std::vector<double> values{1.8,   1.202, 0.706, 1.268, 1.386, 0.524, 0.362, 1.04,
                                 0.876, 0.182, 0.566, 1.292, 0.916, 0.514, 1.211, 1.605,
                                 0.9,   0.686, 1.345, 1.202, 0.332, 0.427, 1.014, 0.562};

// Returns the learning rate after each of the values, as powers of the factor: the logarithm of rate / peak.
std::vector<double> reductions(const Plateau& plateau) {
  const Schedule schedule({.peak = 0.5, .decay = plateau});
  PlateauState state;
  std::vector<double> all;
  for (const double value : values) {
    state = schedule.observe(value, 1, state);
    const double reduced = std::log(schedule.learning_rate(1, state) / 0.5) / std::log(plateau.factor);
    all.push_back(std::round(reduced * 1000) / 1000);
  }
  return all;
}

}  // namespace

// The expected values are those of torch.optim.lr_scheduler.ReduceLROnPlateau with eps=0.
TEST_CASE("a plateau reduces the rate after the same values as PyTorch") {
  using Reductions = std::vector<double>;
  CHECK(reductions({.factor = 0.5, .patience = 1}) ==
        Reductions{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9});
  CHECK(reductions({.patience = 2, .cooldown = 2}) ==
        Reductions{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3});
  CHECK(reductions({.factor = 0.5, .patience = 0, .threshold = 0.1, .min_lr = 0.01}) ==
        Reductions{0,     0,     0,     1,     2,     2,     2,     3,     4,     4,     5,     5.644,
                   5.644, 5.644, 5.644, 5.644, 5.644, 5.644, 5.644, 5.644, 5.644, 5.644, 5.644, 5.644});
  CHECK(reductions({.factor = 0.5, .patience = 1, .cooldown = 1, .mode = Plateau::max}) ==
        Reductions{0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 8});
}

TEST_CASE("the first value is the best so far, whatever its sign") {
  for (const double first : {-3.0, 0.0, 5.0})
    for (const auto mode : {Plateau::min, Plateau::max}) {
      const PlateauState state = observed({.patience = 0, .mode = mode}, {}, first);
      CHECK(state == PlateauState{.observations = 1, .best = first});
    }
}

TEST_CASE("a plateau observes nothing during the warm-up, which multiplies its rate") {
  const Schedule schedule({.peak = 0.8, .warmup_steps = 4, .decay = Plateau{.factor = 0.5, .patience = 0}});
  PlateauState state;
  for (const std::int64_t steps : {1, 2, 4}) state = schedule.observe(1, steps, state);
  CHECK(state == PlateauState{});
  CHECK(schedule.learning_rate(1, state) == doctest::Approx(0.4));
  state = schedule.observe(1, 5, state);
  CHECK(schedule.learning_rate(5, state) == 0.8);
  state = schedule.observe(1, 6, state);
  CHECK(schedule.learning_rate(6, state) == 0.4);
}

TEST_CASE("the state of a plateau is kept as numbers, and numbers that no run reaches are refused") {
  const PlateauState state{.observations = 7, .best = -0.1, .bad = 2, .cooldown = 1, .reductions = 3};
  CHECK(plateau_state(numbers_of(state)) == state);
  const auto refusal = [&](std::size_t index, double number) {
    PlateauNumbers numbers = numbers_of(state);
    numbers.at(index) = number;
    return user_error([&] { plateau_state(numbers); });
  };
  CHECK(refusal(0, -1) == "has the number -1, which no run can reach");
  CHECK(refusal(1, std::nan("")) == "has the number nan, which no run can reach");
  CHECK(refusal(2, 0.5) == "has the number 0.5, which no run can reach");
  CHECK(refusal(4, 1e300) == "has the number 1e+300, which no run can reach");
  CHECK(user_error([] { plateau_state(std::vector<double>{1, 2}); }) == "has 2 numbers instead of 5");
}

TEST_CASE("a metric that is not finite is refused") {
  CHECK(user_error([] { observed({}, {}, std::nan("")); }) ==
        "the metric that lowers the learning rate at a plateau is nan; it must be a finite number");
  CHECK(user_error([] { observed({}, {}, -INFINITY); }).find("is infinite;") != std::string::npos);
}

TEST_CASE("options of a plateau outside their range are named") {
  const auto text = [](const Plateau& plateau) {
    return user_error([&] { Schedule schedule({.peak = 0.1, .decay = plateau}); });
  };
  const std::string start = "the learning-rate schedule has ";
  CHECK(text({.factor = 1}) == start + "factor = 1; it must be a number > 0 and < 1");
  CHECK(text({.patience = -1}) == start + "patience = -1; it must be a whole number >= 0");
  CHECK(text({.threshold = 1}) == start + "threshold = 1; it must be a number from 0 to below 1");
  CHECK(text({.cooldown = -1}) == start + "cooldown = -1; it must be a whole number >= 0");
  CHECK(text({.min_lr = 0.2}) == start + "min_lr = 0.2; it must be a number from 0 to the peak");
}

TEST_CASE("the name of a metric says whether larger values are better") {
  for (const char* rising :
       {"accuracy", "accuracy_top5", "r2", "f1_macro", "exact_match", "psnr", "mean_iou", "pixel_accuracy"})
    CHECK(mode_by_name(rising) == Plateau::max);
  for (const char* falling : {"loss", "mae", "rmse", "perplexity"})
    CHECK(mode_by_name(falling) == Plateau::min);
  CHECK(!mode_by_name("coverage"));
}

TEST_CASE("only a plateau observes") { CHECK_THROWS_AS(Schedule(0.1).observe(1, 1, {}), InternalError); }

}  // namespace plexaura::testing::plateau_test
