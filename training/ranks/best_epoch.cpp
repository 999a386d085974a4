#include "training/ranks/best_epoch.h"

#include <cmath>

namespace plexaura {

namespace {

bool is_improvement(const EpochGoal& goal, double value, double best) {
  if (std::isnan(value) || std::isnan(best)) return !std::isnan(value);
  return goal.mode == Plateau::min ? value < best : value > best;
}

}  // namespace

BestEpoch compared(const EpochGoal& goal, BestEpoch best, std::int64_t epoch, std::int64_t step,
                   double value) {
  if (best.is_known() && epoch <= best.epoch + best.worse) return best;
  if (!best.is_known() || is_improvement(goal, value, best.value))
    return {.epoch = epoch, .step = step, .value = value};
  ++best.worse;
  return best;
}

bool is_exhausted(const EpochGoal& goal, const BestEpoch& best) {
  return goal.patience && best.worse >= *goal.patience;
}

std::string name_of(const std::string& metric, Plateau::Mode mode) {
  return (mode == Plateau::min ? "min " : "max ") + metric;
}

}  // namespace plexaura
