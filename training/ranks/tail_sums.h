#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/exchange/collective.h"
#include "core/step/step_metrics.h"

namespace plexaura {

// Sums the tails of steps over ranks that train by themselves, for all steps of about a second in one call,
// because over a slow link each sum takes longer than a step. A tail also reports that a rank wants to stop
// or has failed. All ranks learn this after the same step.
class TailSums {
 public:
  // `seconds` is the duration of the steps that are summed in one call; 0: each step is summed alone. Fewer
  // steps are summed if ranks would otherwise wait for a slow rank for a large part of their deadline.
  // `ranks` must outlive this.
  TailSums(Collective& ranks, double seconds) : ranks_(ranks), seconds_(seconds) {}

  // Stores the tail of this rank's next step. `failure` is the error of this rank, or null. A rank that has
  // failed still makes the steps up to the next sum, without data.
  void keep(const StepMetrics& mine, const std::exception_ptr& failure);
  // Returns this rank's error in a step that is not summed yet, or null.
  const std::exception_ptr& failure() const { return failure_; }

  // Returns true if add_up() must be called now. Returns the same on all ranks. For `is_busy` see
  // WeightExchange::is_exchanging().
  bool is_due(bool is_busy) const;
  // Collective; at least one tail must be stored. Returns the sums of the steps since the last call, in their
  // order, valid until the next call. Throws on all ranks if one has failed; with `asks_all`, asks each rank
  // whether it has failed. `what` names the call in errors.
  std::span<const StepMetrics> add_up(bool asks_all, std::string_view what);

 private:
  void adapt(double seconds);

  Collective& ranks_;
  double seconds_;
  std::vector<StepMetrics> kept_;
  std::vector<StepMetrics> sums_;
  std::vector<double> slots_;  // the tails as numbers, kept to avoid allocations
  std::exception_ptr failure_;
  std::int64_t steps_ = 1;  // number of steps until a sum is due; the same on all ranks
  double begin_ = seconds_now();
};

}  // namespace plexaura
