#include "training/loop/step_runner.h"

#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

// With a courier the tails are summed after each step: a rank that has failed reads no data until the next sum, and the
// ranks that get their data from the courier would wait for it.
StepRunner::StepRunner(TrainingPrograms& programs, Collective& ranks, bool watch, double report_seconds)
    : programs_(programs),
      ranks_(ranks),
      watch_(watch),
      is_local_(programs.strategy().parts.scope == GradientScope::local),
      tails_(ranks, programs.strategy().parts.courier != nullptr ? 0 : report_seconds) {}

StepInputs StepRunner::with_batches(const Step& data, StepInputs inputs) {
  feeds_.clear();
  batches_.clear();
  try {
    for (const MicroBatch& batch : data.micro_batches) {
      feeds_.push_back(programs_.feeds(batch.fields));
      batches_.push_back({feeds_.back(), batch.samples, batch.first_sample});
    }
  } catch (...) {
    inputs.failure = std::current_exception();
  }
  inputs.micro_batches = batches_;
  inputs.shards = data.parts;
  return inputs;
}

std::span<const LaunchedStep> StepRunner::read(bool is_last) {
  answered_.clear();
  if (!under_way_) return {};
  LaunchedStep& step = unanswered_.emplace_back(*std::exchange(under_way_, std::nullopt));
  const std::span<const StepMetrics> metrics = answers(step, is_last);
  step.end = seconds_now();
  if (metrics.empty()) return {};
  answered_.swap(unanswered_);
  for (std::size_t i = 0; i < answered_.size(); ++i) answered_[i].metrics = metrics[i];
  return answered_;
}

std::span<const StepMetrics> StepRunner::answers(const LaunchedStep& step, bool is_last) {
  // The ranks do not agree on an error here, because other ranks may not call agree_on_error() for it.
  programs_.step().await_exchange(step.ticket);
  one_ = {};
  std::exception_ptr mine;
  try {
    one_ = programs_.step().metrics(step.ticket);
  } catch (...) {
    mine = std::current_exception();
    one_.failed = true;
  }
  if (is_local_) {
    tails_.keep(one_, mine);
    if (!is_last && !tails_.is_due(step.is_exchanging)) return {};
    return tails_.add_up(watch_, fmt::format("the loss of step {}", step.number));
  }
  // If `watch` finds a NaN or Inf in the update, the tail does not show it.
  if (mine || one_.failed || watch_) agree_on_error(ranks_, mine, fmt::format("step {}", step.number));
  if (one_.failed)
    throw InternalError(fmt::format("step {} failed on a rank that gives no reason", step.number));
  if (!std::exchange(tail_checked_, true)) check_tail(one_, step.global_samples);
  return {&one_, 1};
}

// Throws if a strategy does not sum the tail. Then each rank would report the loss of its own samples, and
// would stop alone.
void StepRunner::check_tail(const StepMetrics& metrics, std::int64_t global_samples) {
  if (ranks_.size() == 1 && programs_.strategy().parts.gradients == nullptr) return;
  together(ranks_, "the tail of the first step", [&] {
    if (metrics.samples == static_cast<double>(global_samples)) return;
    throw UserError(
        fmt::format("the strategy leaves rank {} with a tail of {} samples, but the step has {}: the last "
                    "bucket carries loss and counts, and must be summed over all ranks like the others",
                    ranks_.rank(), metrics.samples, global_samples));
  });
}

}  // namespace plexaura
