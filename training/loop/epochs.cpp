#include "training/loop/epochs.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "core/base/events.h"
#include "training/loop/signals.h"
#include "training/loop/steps.h"
#include "training/loop/strategy_history.h"
#include "training/optimizers/averaged_weights.h"
#include "training/ranks/on_rank_0.h"
#include "training/ranks/verify_ranks.h"

namespace plexaura {

namespace {

// True if a device of any rank runs ahead of the host. All ranks must read their metrics at the same time:
// otherwise they would notice a failure after different steps.
bool any_rank_runs_ahead(const Run& run) {
  const std::string mine = run.parts.backend.info().host_memory ? "waits" : "runs ahead";
  const auto all = run.ranks().gather_all(mine, "whether steps run ahead of their metrics");
  return std::ranges::find(all, "runs ahead") != all.end();
}

// Returns the signal of the lowest rank that received one; 0 if none did.
int agreed_signal(Collective& ranks, int mine) {
  for (const std::string& text : ranks.gather_all(std::to_string(mine), "the signal that ends the run"))
    if (text != "0") return std::stoi(text);
  return 0;
}

bool has_made_planned_steps(const Run& run) {
  const RunPlace& place = run.progress.place;
  return place.epoch >= run.options.epochs || (run.options.steps && place.step >= *run.options.steps);
}

bool has_used_up_its_patience(const Run& run) {
  return run.options.goal && is_exhausted(*run.options.goal, run.progress.place.best);
}

// True at the end of the run. It is also true for a resumed run that had used up its patience before.
bool has_made_all_steps(const Run& run) {
  return has_made_planned_steps(run) || has_used_up_its_patience(run);
}

bool any_rank_asked_to_end(const Run& run) {
  std::int64_t asking = run.stop.asked ? 1 : 0;
  run.ranks().sum(DType::int64, reinterpret_cast<std::byte*>(&asking), 1, "whether the run ends early");
  return asking > 0;
}

// Returns what the strategy has exchanged. A device with its own memory keeps computing while the host waits,
// so the host's waiting time does not show how much of the exchange overlapped with computation.
std::optional<ExchangeRecord> take_exchange_record(const Run& run) {
  std::optional<ExchangeRecord> record = strategy_or_none(run.strategy().strategy).take_exchange_record();
  if (record && !run.parts.backend.info().host_memory) record->waited_seconds.reset();
  return record;
}

std::optional<RankWaits> take_waits(const Run& run, double seconds, double waited_seconds) {
  if (run.ranks().size() == 1 || run.runs_ahead) return std::nullopt;
  RankWaits waits = gather_waits(run.ranks(), {run.number(), waited_seconds}, seconds);
  waits.meet_in_steps = run.division.protocol->meets_in_steps;
  return waits;
}

// Saves a checkpoint. The weights are checked even if none is written, unless ends_on_divergence is set: a finite
// loss does not prove that they are finite, because an op can turn NaN into a number. If there are averages, the
// file of weights holds them, since users of the weights want them. The file of the state then holds the trained
// weights.
void save(Run& run) {
  if (run.folder.is_written() || has_made_all_steps(run) || run.progress.stopped) verify(run);
  run.programs->step().await_weights();
  RunState state = state_of(run);
  state.strategy_ranks = run.history.saved_ranks = run.ranks().size();
  if (run.folder.is_written()) state.strategy = gather_state_of_strategy(run);
  on_rank_0(run.ranks(), "saving a checkpoint", [&] {
    if (!run.folder.is_written()) {
      if (!run.options.ends_on_divergence) check_weights(run.store);
      return;
    }
    const OptimizerSpec& optimizer = run.options.optimizer;
    if (has_averages(run.store, optimizer)) state.notes[averaged_key] = fmt::format("{}", *optimizer.ema);
    with_averages(run.store, optimizer, [&] { run.folder.write(run.store, state); });
  });
  if (run.folder.is_written()) report_event(EventKind::saved, state.step);
  run.progress.place.saved = true;
}

// Compares the epoch with the best one so far. The figures of the validation are the same on all ranks.
void compare_epoch(Run& run, const EpochRecord& record) {
  if (!run.options.goal) return;
  const double value = validation_value(run.options.goal->metric, record.val_loss, record.val_metrics);
  BestEpoch& best = run.progress.place.best;
  best = compared(*run.options.goal, best, record.epoch, record.step, value);
}

// Returns the state of the learning rate's Plateau after this validation. It is the same on all ranks.
PlateauState observe_validation(const Run& run, const EpochRecord& record) {
  const RunPlace& place = run.progress.place;
  const Plateau* const plateau = run.options.learning_rate.plateau();
  if (plateau == nullptr) return place.plateau;
  return together(run.ranks(), fmt::format("the learning rate after epoch {}", record.epoch + 1), [&] {
    const double value = validation_value(plateau->metric, record.val_loss, record.val_metrics);
    const std::int64_t steps = place.epoch * run.division.train.steps_per_epoch();
    return run.options.learning_rate.observe(value, steps, place.plateau);
  });
}

// A step whose labels are all ignored has no gradients, and its weight is 0. The sum of the weights is also 0 if the
// steps of the epoch were made by ranks that are lost.
void check_has_labels(Run& run) {
  const bool was_weightless = std::exchange(run.progress.is_weightless, false);
  const RunPlace& place = run.progress.place;
  if (!run.programs->evaluator().is_weighted() || place.epoch_samples > 0) return;
  const std::string epoch = fmt::format("epoch {}", place.epoch);
  const UserError error(
      fmt::format("{} has trained nothing: all of its labels are ignored, or their classes have the weight "
                  "0; check the labels, model.ignored_class and model.class_weights",
                  epoch));
  agree_on_error(run.ranks(), was_weightless ? std::make_exception_ptr(error) : nullptr, epoch);
}

void finish_epoch(Run& run) {
  const double seconds = seconds_now() - run.clock.epoch_begin;
  const double waited_seconds = seconds_waited() - run.clock.waited_before;
  check_reported(run);
  check_has_labels(run);
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const Evaluator& evaluator = run.programs->evaluator();
  RunPlace& place = run.progress.place;
  EpochRecord record{.epoch = place.epoch - 1,
                     .train_loss = place.epoch_samples > 0 ? place.epoch_loss / place.epoch_samples : 0,
                     .val_loss = none,
                     .seconds = seconds,
                     .exchange = take_exchange_record(run),
                     .waits = take_waits(run, seconds, waited_seconds),
                     .step = place.step};
  if (run.store.types().scales_loss()) record.loss_scale = run.store.read_loss_scale();
  if (run.division.validation.samples > 0) {
    run.programs->step().await_weights();
    Validation validation = validate(run);
    record.val_loss = validation.loss;
    record.val_metrics = std::move(validation.metrics);
    run.result.skipped_validation = std::move(validation.skipped);
    check_loss_of_all(run, record.val_loss, fmt::format("the validation loss after step {}", place.step));
    // Nothing may throw from here until `epoch_ended` is false, so that no epoch is observed twice.
    place.plateau = observe_validation(run, record);
    compare_epoch(run, record);
  } else {
    record.val_metrics = evaluator.values_of(std::vector<double>(evaluator.sum_count(), none), none);
  }
  run.result.last_epoch = record;
  place.epoch_loss = place.epoch_samples = 0;
  place.epoch_ended = false;
  together(run.ranks(), fmt::format("the report of epoch {}", record.epoch + 1),
           [&] { run.observers.epoch(record); });
  run.progress.stopped = any_rank_asked_to_end(run) || run.progress.stopped;
  save(run);
  run.clock.begin_epoch();
}

}  // namespace

void begin_run(Run& run) {
  begin_strategy(run);
  give_strategy_state(run);
  run.runs_ahead = any_rank_runs_ahead(run);
  run.verifies = run.options.verify_every > 0 && ranks_stay_equal(run);
  run.clock.begin = seconds_now();
  run.clock.begin_epoch();
}

bool prepare_step(Run& run) {
  if (run.progress.place.epoch_ended) {
    finish_epoch(run);
  } else if (is_save_due(run)) {
    check_reported(run);
    save(run);
  }
  if (has_made_all_steps(run) || run.progress.stopped) return false;
  run.stop.look_for_signal();
  return true;
}

void end_run(Run& run) {
  check_reported(run);
  run.programs->step().await_weights();
  strategy_or_none(run.strategy().strategy).end();
  const RunPlace& place = run.progress.place;
  run.result.steps = place.step;
  run.result.steps_now = place.step - place.first_step;
  if (run.options.goal) run.result.best = place.best;
  run.result.is_exhausted = !has_made_planned_steps(run) && has_used_up_its_patience(run);
  if (!place.saved && run.result.steps_now > 0) save(run);
  if (!run.progress.stopped) return;
  const int signal = run.stop.signal;
  run.result.signal = agreed_signal(run.ranks(), signal != 0 ? signal : StopSignals::received());
}

void summarize(Run& run, const StepSource& steps, double rate) {
  run.result.images_per_second = rate;
  run.result.stall_share = steps.stall_seconds() / std::max(seconds_now() - run.clock.begin, 1e-9);
  if (run.options.on_error == OnError::skip)
    run.result.skipped = gather_skipped(run.ranks(), steps.skipped(), "the samples that could not be read");
}

// Evaluates the validation data. If exchanging the weights fails on one rank, it fails on all: otherwise the other ranks
// would wait for that rank in the validation.
Validation validate(Run& run) {
  const OptimizerSpec& optimizer = run.options.optimizer;
  const auto validated = [&] {
    return validate(run.programs->evaluator(), run.parts.validation, run.ranks(), reading(run),
                    run.strategy().parts.courier);
  };
  if (!optimizer.ema) return validated();
  const auto exchange = [&] { exchange_averages(run.store, optimizer); };
  Validation result;
  together(run.ranks(), "taking the averages of the weights", exchange);
  try {
    result = validated();
  } catch (...) {
    exchange();
    throw;
  }
  together(run.ranks(), "restoring the weights", exchange);
  return result;
}

void verify(Run& run) {
  if (!run.verifies) return;
  run.programs->step().await_weights();
  verify_ranks(run.ranks(), run.store, run.progress.place.step, run.number());
}

// True if save_every demands a checkpoint after this step. It counts the steps of the whole run, so that a
// resumed run saves after the same steps.
bool is_to_be_saved(const Run& run, std::int64_t step) {
  return run.options.save_every && step % *run.options.save_every == 0;
}

// True if a checkpoint is due now. This is also the case at the end of an epoch whose checkpoint is missing
// because a rank was lost before it was saved.
bool is_save_due(const Run& run) {
  const RunPlace& place = run.progress.place;
  if (place.saved || place.step == place.first_step) return false;
  return place.step_in_epoch == 0 || is_to_be_saved(run, place.step);
}

void check_loss_of_all(Run& run, double loss, const std::string& name) {
  try {
    check_loss(loss, name);
  } catch (const UserError&) {
    agree_on_error(run.ranks(), std::current_exception(), name);
    throw;
  }
}

}  // namespace plexaura
