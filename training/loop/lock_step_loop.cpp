// The training loop of ranks that make each step together.

#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "core/base/events.h"
#include "training/data/sent_steps.h"
#include "training/loop/epochs.h"
#include "training/loop/steps.h"
#include "training/loop/streams.h"

namespace plexaura {

namespace {

// Returns the data of the next step. If this rank has failed, sets `failure` and returns no samples.
Step read_step(Run& run, StepSource& steps, std::exception_ptr& failure) {
  const RunPlace& place = run.progress.place;
  const BatchPlan& plan = run.division.train;
  Step data{.epoch = place.epoch,
            .step_in_epoch = place.step_in_epoch,
            .steps_in_epoch = plan.steps_per_epoch(),
            .global_samples = plan.global_batch(place.step_in_epoch).count,
            .micro_batches = {}};
  // If an observer of an earlier step threw on this rank, the exception is treated as a failure of this step.
  failure = run.observers.take_failure();
  if (!failure) failure = run.runner->failure();
  if (!failure) try {
      data = next_step(run, steps);
    } catch (...) {
      failure = std::current_exception();
    }
  return data;
}

void note_under_way(Run& run) {
  if (!run.runner->under_way()) return;
  const LaunchedStep& step = *run.runner->under_way();
  const bool ends_run = step.number == run.options.steps || run.progress.stopped;
  const bool is_last = step.ends_epoch || ends_run || is_to_be_saved(run, step.number);
  for (const LaunchedStep& each : run.runner->read(is_last)) {
    if (run.options.ends_on_divergence && !std::isfinite(each.metrics.loss)) {
      run.progress.stopped = true;
      return;
    }
    check_loss_of_all(run, each.metrics.loss, fmt::format("the loss of step {}", each.number));
    note(run, each);
  }
}

// Launches the next step. Handles the step before it while the device computes. `stream` is `steps` if they come from a
// stream, and null otherwise.
void make_step(Run& run, StepSource& steps, StreamSteps* stream) {
  report_event(EventKind::step, run.progress.place.step + 1);
  const double begin = seconds_now();
  std::exception_ptr failure;
  Step data = read_step(run, steps, failure);
  const bool ends_run = stream != nullptr && ends_with_stream(run, *stream);
  const bool ends_epoch = data.ends_epoch() || ends_run;
  const LaunchedStep step = launch(run, std::move(data), std::move(failure), begin, ends_epoch);
  if (stream != nullptr) count_streamed(run);
  note_under_way(run);
  run.runner->keep(step);
  const bool is_verified = run.verifies && step.number % run.options.verify_every == 0;
  const bool reads_now =
      step.ends_epoch || is_verified || is_save_due(run) || shows_gradients(run, step.number);
  if (!run.runs_ahead || reads_now) note_under_way(run);
  if (is_verified) verify(run);
}

void finish(Run& run, const StepSource& steps) {
  note_under_way(run);
  end_run(run);
  summarize(run, steps, run.clock.rates.median());
}

void train_on_stream(Run& run) {
  const auto steps = together(run.ranks(), "the start of training", [&] { return make_stream_steps(run); });
  begin_run(run);
  bool has_step = prepare_step(run) && begin_stream(run, *steps);
  while (has_step) {
    make_step(run, *steps, steps.get());
    has_step = prepare_step(run);
  }
  finish(run, *steps);
}

void train_in_lock_step(Run& run) {
  if (run.parts.stream) return train_on_stream(run);
  SampleStream stream(run.strategy().parts.courier, Courier::Stream::training);
  const auto steps = together(run.ranks(), "the start of training",
                              [&] { return make_steps(run.parts.train, reading_on(run), stream); });
  begin_run(run);
  while (prepare_step(run)) make_step(run, *steps, nullptr);
  finish(run, *steps);
}

}  // namespace

const Protocol lock_step_protocol{train_in_lock_step, true};

}  // namespace plexaura
