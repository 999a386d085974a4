// The training loop of ranks that draw parts of the data from a dealer. Each rank makes its steps without the other
// ranks, until no parts are left.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "core/base/events.h"
#include "training/loop/epochs.h"
#include "training/loop/steps.h"

namespace plexaura {

namespace {

Dealer& dealer_of(const Run& run) { return *run.strategy().parts.dealer; }

// Returns the steps of the next deal: up to the next checkpoint, or the end of the epoch or of the run.
DealtSteps steps_of_deal(const Run& run) {
  const BatchPlan& plan = run.division.train;
  const RunPlace& place = run.progress.place;
  const std::int64_t epoch_begin = place.step - place.step_in_epoch;
  std::int64_t end = plan.steps_per_epoch();
  if (run.options.steps) end = std::min(end, *run.options.steps - epoch_begin);
  if (const auto every = run.options.save_every)
    end = std::min(end, (place.step / *every + 1) * *every - epoch_begin);
  const auto parts = [&](std::int64_t step) { return std::min(plan.ranks, plan.global_batch(step).count); };
  return {place.step_in_epoch, end, parts(place.step_in_epoch), parts(end - 1), place.step};
}

// Makes one step. Returns this rank's own failure, or null. Throws errors between ranks.
std::exception_ptr train_alone(Run& run, Loader& loader, double begin) {
  Step data;
  try {
    data = next_step(run, loader);
  } catch (...) {
    return std::current_exception();
  }
  run.progress.go_to(data.step_in_epoch);
  report_event(EventKind::step, run.progress.place.step + 1);
  LaunchedStep step = launch(run, std::move(data), nullptr, begin, false);
  try {
    step.metrics = run.programs->step().metrics(step.ticket);
    step.end = seconds_now();
    check_loss(step.metrics.loss, fmt::format("the loss of step {}", step.number));
    note(run, step);
  } catch (...) {
    return std::current_exception();
  }
  return run.observers.take_failure();
}

// Draws parts until the loader has no room for more. If no parts are left, returns the step after the last
// one that was dealt.
std::optional<std::int64_t> draw_ahead(Run& run, Loader& loader, const DealtSteps& steps) {
  while (loader.has_room()) {
    const Draw drawn = dealer_of(run).draw(steps);
    if (!drawn.part) return drawn.step_in_epoch;
    loader.read_ahead(run.progress.place.epoch, drawn.step_in_epoch, *drawn.part);
  }
  return std::nullopt;
}

// Trains until no parts are left or this rank fails. Returns the step after the last one that was dealt.
std::int64_t train_drawn(Run& run, Loader& loader, const DealtSteps& steps) {
  std::optional<std::int64_t> dealt;
  while (!run.progress.failure) {
    const double begin = seconds_now();
    run.stop.look_for_signal();
    if (run.stop.is_made()) dealer_of(run).stop();
    if (!dealt) dealt = draw_ahead(run, loader, steps);
    if (loader.is_empty()) return *dealt;
    run.progress.failure = train_alone(run, loader, begin);
  }
  // This rank has failed, so the run ends and the remaining parts are not trained on.
  dealer_of(run).stop();
  while (true)
    if (const Draw drawn = dealer_of(run).draw(steps); !drawn.part) return drawn.step_in_epoch;
}

// Trains on the parts of one deal, including parts of a rank that dies during the deal.
void train_deal(Run& run, Loader& loader) {
  Progress& progress = run.progress;
  // meet() adds up the sums of all ranks; only rank 0 contributes those from before this deal.
  if (run.ranks().rank() != 0) progress.place.epoch_loss = progress.place.epoch_samples = 0;
  const DealtSteps steps = steps_of_deal(run);
  progress.deal_begin = steps.first;
  std::int64_t dealt = steps.first;
  do {
    run.programs->step().take_weights_back();  // needed here in case this rank gets no part
    dealt = train_drawn(run, loader, steps);
    run.programs->step().await_weights();
  } while (!dealer_of(run).is_over());
  progress.go_to(dealt);
  progress.deal_begin.reset();
  progress.place.is_to_meet = true;
}

// Called by all ranks after a deal, when their weights are already equal. Shares failures and requests to
// stop, and adds up losses and samples.
void meet(Run& run) {
  Progress& progress = run.progress;
  const std::string what = fmt::format("the steps of epoch {}", progress.place.epoch + 1);
  agree_on_error(run.ranks(), progress.failure, what);
  std::array sums{progress.place.epoch_loss, progress.place.epoch_samples, run.stop.is_made() ? 1.0 : 0.0};
  run.ranks().sum(DType::float64, reinterpret_cast<std::byte*>(sums.data()), std::ssize(sums), what);
  progress.place.epoch_loss = sums[0];
  progress.place.epoch_samples = sums[1];
  progress.stopped = sums[2] > 0;
  progress.place.is_to_meet = false;
  if (progress.place.step_in_epoch >= run.division.train.steps_per_epoch()) progress.end_epoch();
}

// Returns the sum of the rates of all ranks, since each rank makes its own steps.
double rate_of_all_ranks(const Run& run) {
  double rate = run.clock.rates.median();
  run.ranks().sum(DType::float64, reinterpret_cast<std::byte*>(&rate), 1, "the speed of all ranks");
  return rate;
}

void train_what_is_dealt(Run& run) {
  const auto loader = together(run.ranks(), "the start of training", [&] {
    LoaderOptions options = reading_on(run);
    options.parts = Parts::drawn;
    return std::make_unique<Loader>(run.parts.train, options);
  });
  begin_run(run);
  while (true) {
    if (run.progress.place.is_to_meet) meet(run);
    if (!prepare_step(run)) break;
    train_deal(run, *loader);
  }
  end_run(run);
  summarize(run, *loader, rate_of_all_ranks(run));
}

}  // namespace

const Protocol dealt_protocol{train_what_is_dealt, false};

}  // namespace plexaura
