#include "training/ranks/best_epoch.h"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

namespace plexaura::testing::best_epoch_test {

namespace {

// Returns the best epoch of a run whose epochs, of ten steps each, have these values.
BestEpoch best_of(const EpochGoal& goal, const std::vector<double>& values) {
  BestEpoch best;
  for (std::int64_t epoch = 0; epoch < std::ssize(values); ++epoch)
    best = compared(goal, best, epoch, 10 * (epoch + 1), values[static_cast<std::size_t>(epoch)]);
  return best;
}

}  // namespace

TEST_CASE("the first of equally good epochs is the best, and the others count as worse") {
  CHECK(best_of({}, {3, 1, 2, 1}) == BestEpoch{.epoch = 1, .step = 20, .value = 1, .worse = 2});
  CHECK(best_of({.metric = "accuracy", .mode = Plateau::max}, {0.5, 0.25, 0.75}) ==
        BestEpoch{.epoch = 2, .step = 30, .value = 0.75});
  CHECK(!BestEpoch{}.is_known());
}

TEST_CASE("NaN is worse than any number") {
  CHECK(best_of({}, {NAN, 2, NAN}) == BestEpoch{.epoch = 1, .step = 20, .value = 2, .worse = 1});
  CHECK(best_of({.mode = Plateau::max}, {NAN, NAN, -2}).epoch == 2);
}

TEST_CASE("an epoch that is compared again changes nothing") {
  BestEpoch best = best_of({}, {3, 1, 2});
  CHECK(compared({}, best, 2, 30, 0) == best);
  CHECK(compared({}, best, 1, 20, 1) == best);
}

TEST_CASE("the patience is used up after as many worse epochs in a row") {
  const EpochGoal goal{.patience = 2};
  CHECK(!is_exhausted(goal, {}));
  CHECK(!is_exhausted(goal, best_of(goal, {3, 1, 2})));
  CHECK(is_exhausted(goal, best_of(goal, {3, 1, 2, 2})));
  CHECK(!is_exhausted(goal, best_of(goal, {3, 1, 2, 0})));
  CHECK(!is_exhausted({}, best_of({}, {1, 2, 2, 2, 2})));
}

TEST_CASE("goals of other metrics or directions have other names") {
  CHECK(name_of("loss", Plateau::min) == "min loss");
  CHECK(name_of("accuracy", Plateau::max) == "max accuracy");
}

}  // namespace plexaura::testing::best_epoch_test
