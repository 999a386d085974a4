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

// Adds up the tails of steps over ranks that train for themselves, those of about a second at once: over a slow link each
// sum takes longer than a step. What a rank tells in a tail, that it wants to stop or has failed, all hear behind the
// same step.
class TailSums {
 public:
  // `seconds`: of steps that are added up at once. Fewer where ranks would wait for a slow one for a large part of their
  // deadline; 0: each step is. The ranks outlive this.
  TailSums(Collective& ranks, double seconds) : ranks_(ranks), seconds_(seconds) {}

  // The tail of this rank's next step. `failure`: its own, or null. A rank that has failed still makes the steps up to the
  // next sum, without data.
  void keep(const StepMetrics& mine, const std::exception_ptr& failure);
  // Its own, of a step that is not added up yet; null: none.
  const std::exception_ptr& failure() const { return failure_; }

  // The same on all ranks. `is_busy`: see WeightExchange::is_exchanging.
  bool is_due(bool is_busy) const;
  // Collective; there is one or more. Those of the steps kept since the last time, in their order, until the next call.
  // Throws on all ranks where one has failed, and with `asks_all` asks each whether it has. `what` names the sum.
  std::span<const StepMetrics> add_up(bool asks_all, std::string_view what);

 private:
  void adapt(double seconds);

  Collective& ranks_;
  double seconds_;
  std::vector<StepMetrics> kept_;
  std::vector<StepMetrics> sums_;
  std::vector<double> slots_;  // scratch
  std::exception_ptr failure_;
  std::int64_t steps_ = 1;  // until a sum is due; the same on all ranks
  double begin_ = seconds_now();
};

}  // namespace plexaura
