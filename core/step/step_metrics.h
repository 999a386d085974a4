#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "core/base/export.h"
#include "core/device/backend.h"
#include "core/params/parameter_store.h"

namespace plexaura {

// The slot of the tail that holds LossOutputs::weight. A model without a weight may use it for its last metric.
inline constexpr TailSlot weight_slot = metric_slot(most_metrics - 1);

// Returns the mean loss of `samples` samples, whose losses add up to `sum`. `weight` is the sum of
// LossOutputs::weight; empty if the model has no weight. The sum is divided by the weight, or by the number
// of samples if the weight is empty or 0.
PLEXAURA_API double mean_loss(double sum, double samples, std::optional<double> weight);

// The tail of a step, summed over ranks and micro-batches.
struct StepMetrics {
  double loss = 0;  // mean over all samples of the step: see mean_loss()
  double samples = 0;
  bool stop = false;    // some rank was asked to stop; all ranks stop after this step
  bool failed = false;  // some rank's own work failed
  // Sum of each metric over the samples, in the order of LossOutputs::metrics.
  std::array<double, most_metrics> sums = {};
  std::optional<double> weight = {};  // the sum of LossOutputs::weight; empty if the model has none
};

// Metrics as the slots of the tail, and back. Metrics are summed over ranks in this form if no strategy has
// summed them together with the gradients. `is_weighted`: the model has a LossOutputs::weight.
using StepTail = std::array<double, static_cast<std::size_t>(tail_count)>;
PLEXAURA_API StepTail tail_of(const StepMetrics& metrics);
PLEXAURA_API StepMetrics metrics_of(const StepTail& tail, bool is_weighted = false);

// A step that was launched.
struct StepTicket {
  std::uint64_t number = 0;  // counts the steps of one TrainingStep, from 1
};

// Keeps the tails of the last two steps in host memory, so that a step can be read while the next one runs.
class MetricsRing {
 public:
  // The backend and the store must outlive this object. The store must be placed.
  MetricsRing(Backend& backend, const ParameterStore& store);

  // Enqueues a copy of the tail after all work that is enqueued now. `failure` is this rank's own failure, or null. Returns
  // the number of the step. Allocates nothing.
  std::uint64_t push(std::exception_ptr failure);

  // Adds a failure of the last step that the device reported only after push(). Does nothing for null.
  void add_failure(const std::exception_ptr& late);

  // Waits for this step only, and returns its metrics. Throws its failure. Throws InternalError unless it is one of the
  // last two steps.
  StepMetrics read(std::uint64_t number);

  // Sets whether the tails have a LossOutputs::weight; by default they have none.
  void expect_weights(bool expects) { is_weighted_ = expects; }

 private:
  struct TailCopy {
    std::unique_ptr<Memory> tail;
    std::unique_ptr<Event> copied;
    std::exception_ptr failure;
  };

  Backend& backend_;
  const ParameterStore& store_;
  std::array<TailCopy, 2> copies_;
  std::uint64_t pushed_ = 0;
  bool is_weighted_ = false;
};

}  // namespace plexaura
