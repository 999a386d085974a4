#include "training/loop/step_runner.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

StepTicket StepRunner::launch(const Step& data, StepInputs inputs) {
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
  return programs_.step().run(inputs);
}

std::span<const StepMetrics> StepRunner::read(const StepTicket& ticket, const StepToRead& of) {
  programs_.step().await_exchange(ticket);  // no rank may come to agree on what fails there
  // Other ranks make no step when this one does.
  if (exchange_.dealer != nullptr) return of_one(programs_.step().metrics(ticket));
  StepMetrics metrics;
  std::exception_ptr mine;
  try {
    metrics = programs_.step().metrics(ticket);
  } catch (...) {
    mine = std::current_exception();
    metrics.failed = true;
  }
  if (exchange_.scope == GradientScope::local) {
    tails_.keep(metrics, mine);
    if (!of.is_last && !tails_.is_due(of.is_exchanging)) return {};
    return tails_.add_up(watch_, fmt::format("the loss of step {}", of.step));
  }
  // A bad number that the watch finds in the update is in no tail.
  if (mine || metrics.failed || watch_) agree_on_error(ranks_, mine, fmt::format("step {}", of.step));
  if (metrics.failed)
    throw InternalError(fmt::format("step {} failed on a rank that gives no reason", of.step));
  if (!tail_checked_) check_tail(metrics, of.global_samples);
  tail_checked_ = true;
  return of_one(metrics);
}

std::span<const StepMetrics> StepRunner::of_one(const StepMetrics& metrics) {
  one_ = metrics;
  return {&one_, 1};
}

// A strategy may forget the tail. Each rank would then report losses of its own samples, and stop alone.
void StepRunner::check_tail(const StepMetrics& metrics, std::int64_t global_samples) {
  if (ranks_.size() == 1 && exchange_.gradients == nullptr) return;
  together(ranks_, "the tail of the first step", [&] {
    if (metrics.samples == static_cast<double>(global_samples)) return;
    throw UserError(
        fmt::format("the strategy leaves rank {} with a tail of {} samples where the step has {}: the last "
                    "bucket carries loss and counts, and must be summed over all ranks like the others",
                    ranks_.rank(), metrics.samples, global_samples));
  });
}

}  // namespace plexaura
