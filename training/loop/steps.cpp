#include "training/loop/steps.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "core/base/profile.h"
#include "training/loop/dead_gradients.h"

namespace plexaura {

bool shows_gradients(const Run& run, std::int64_t step) {
  const StrategyParts& parts = run.strategy().parts;
  return step <= 2 && parts.scope == GradientScope::global && parts.weights == nullptr && !parts.updates_late;
}

namespace {

// Returns texts about gradients that are not finite or are zero. The gradients of the first step may be zero
// by design: a branch of a ResNet has them if its last batch norm begins with zeros. The first update ends
// this.
std::vector<std::string> dead_gradients_of(const Run& run, std::int64_t step) {
  if (!shows_gradients(run, step)) return {};
  return step == 1 ? gradients_not_finite(run.store) : zero_gradients(run.store);
}

}  // namespace

Step next_step(const Run& run, StepSource& steps) {
  const ProfileSpan span(run.options.profile, "waiting for data", "data");
  return steps.next();
}

LaunchedStep launch(Run& run, Step data, std::exception_ptr failure, double begin, bool ends_epoch) {
  const RunPlace& place = run.progress.place;
  LaunchedStep step{.number = place.step + 1,
                    .epoch = place.epoch,
                    .step_in_epoch = place.step_in_epoch,
                    .steps_in_epoch = data.steps_in_epoch,
                    .global_samples = data.global_samples,
                    .ends_epoch = ends_epoch,
                    .begin = begin};
  // The step of the schedule is computed from the epoch, not from place.step: the run may be resumed from one with
  // another number of steps in an epoch.
  step.learning_rate = run.options.learning_rate.learning_rate(
      step.epoch * step.steps_in_epoch + step.step_in_epoch, place.plateau);
  const auto advance = [&] {
    run.progress.go_to(step.step_in_epoch + 1);
    if (ends_epoch) run.progress.end_epoch();
  };
  const StepInputs inputs = run.runner->with_batches(data, {.global_samples = step.global_samples,
                                                            .step = step.number,
                                                            .epoch = step.epoch,
                                                            .ends_epoch = ends_epoch,
                                                            .learning_rate = step.learning_rate,
                                                            .seed = run.options.seed,
                                                            .stop = run.stop.is_made(),
                                                            .failure = std::move(failure)});
  try {
    step.ticket = run.programs->step().run(inputs);
  } catch (...) {
    if (run.programs->step().updated_step() == step.number) advance();
    throw;
  }
  const WeightExchange* const weights = run.strategy().parts.weights;
  step.is_exchanging = weights != nullptr && weights->is_exchanging();
  advance();
  return step;
}

void note(Run& run, const LaunchedStep& step) {
  const StepMetrics& metrics = step.metrics;
  RunPlace& place = run.progress.place;
  const double counted = metrics.weight.value_or(metrics.samples);
  place.epoch_loss += metrics.loss * counted;
  place.epoch_samples += counted;
  if (metrics.weight == 0.0) run.progress.is_weightless = true;
  const double begin = std::max(step.begin, std::exchange(run.clock.noted_at, step.end));
  const double rate = metrics.samples / std::max(step.end - begin, 1e-9);
  run.clock.rates.add(rate);
  const std::vector<std::string>& names = run.programs->metric_names();
  const StepRecord record{
      .step = step.number,
      .epoch = step.epoch,
      .loss = metrics.loss,
      .metrics = means_of(names, std::span(metrics.sums).first(names.size()), std::max(metrics.samples, 1.0)),
      .images_per_second = rate,
      .learning_rate = step.learning_rate,
      .step_in_epoch = step.step_in_epoch + 1,
      .dead_gradients = dead_gradients_of(run, step.number)};
  run.observers.step(record, step.steps_in_epoch);
  run.progress.stopped = run.progress.stopped || metrics.stop;
}

void check_reported(Run& run) {
  together(run.ranks(), fmt::format("the report of step {}", run.progress.place.step),
           [&] { run.observers.check(); });
}

void check_loss(double loss, const std::string& name) {
  if (std::isfinite(loss)) return;
  throw UserError(
      fmt::format("{} is {}: training diverged; lower the learning rate or weight_decay, or set watch "
                  "(training.watch=true) to see which op made the first such number, for example because a "
                  "sample contains NaN or a label is not a class; no checkpoint was touched",
                  name, std::isnan(loss) ? "nan" : "infinite"));
}

}  // namespace plexaura
