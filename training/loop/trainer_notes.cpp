// What a Trainer reads of its steps, and tells its observer.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "training/loop/step_runner.h"
#include "training/loop/trainer.h"

namespace plexaura {

// Steps whose tails are added up at once are noted at once.
void Trainer::note_step_under_way(TrainingObserver& observer) {
  if (!under_way_) return;
  const StepUnderWay& step = unnoted_.emplace_back(*std::exchange(under_way_, std::nullopt));
  const bool ends_epoch = step.step_in_epoch + 1 == train_plan_.steps_per_epoch();
  const bool ends_run = step.number == options_.steps || stopped_;
  const std::span<const StepMetrics> answers =
      runner_->read(step.ticket, {.step = step.number,
                                  .global_samples = train_plan_.global_batch(step.step_in_epoch).count,
                                  .is_exchanging = step.is_exchanging,
                                  .is_last = ends_epoch || ends_run || is_to_be_saved(step.number)});
  unnoted_.back().end = seconds_now();
  if (answers.empty()) return;
  for (std::size_t i = 0; i < unnoted_.size(); ++i) note_step(unnoted_[i], answers[i], observer);
  unnoted_.clear();
}

void Trainer::note_step(const StepUnderWay& step, const StepMetrics& metrics, TrainingObserver& observer) {
  check_loss(metrics.loss, fmt::format("the loss of step {}", step.number), !is_dealt());
  state_.epoch_loss += metrics.loss * metrics.samples;
  state_.epoch_samples += metrics.samples;
  const double begin = std::max(step.begin, noted_at_);
  noted_at_ = step.end;
  const double rate = metrics.samples / std::max(noted_at_ - begin, 1e-9);
  rates_.add(rate);
  const std::span sums = std::span(metrics.sums).first(programs_->metric_names().size());
  const StepRecord record{
      .step = step.number,
      .epoch = step.epoch,
      .loss = metrics.loss,
      .metrics = means_of(programs_->metric_names(), sums, std::max(metrics.samples, 1.0)),
      .images_per_second = rate,
      .learning_rate = learning_rate(step.epoch, step.step_in_epoch),
      .step_in_epoch = step.step_in_epoch + 1};
  if (!report_failure_) try {
      observer.step(record, train_plan_.steps_per_epoch());
    } catch (...) {
      report_failure_ = std::current_exception();
    }
  stopped_ = stopped_ || metrics.stop;
}

// Behind the last step of an epoch or of the run no other step tells what its observer met.
void Trainer::check_reported() {
  together(ranks(), fmt::format("the report of step {}", state_.step), [&] {
    if (report_failure_) std::rethrow_exception(report_failure_);
  });
}

// Comes before anything is saved, so that a good checkpoint stays.
void Trainer::check_loss(double loss, const std::string& name, bool is_of_all_ranks) {
  if (std::isfinite(loss)) return;
  const UserError error(fmt::format(
      "{} is {}: training diverged; lower the learning rate or weight_decay, or set watch "
      "(training.watch=true) to see "
      "which op made the first such number, where samples may hold a NaN or labels name no class; "
      "no checkpoint was touched",
      name, std::isnan(loss) ? "nan" : "infinite"));
  if (is_of_all_ranks) agree_on_error(ranks(), std::make_exception_ptr(error), name);
  throw error;
}

// A device of its own computes on while the host waits, so that waiting tells nothing of the overlap.
std::optional<ExchangeRecord> Trainer::take_exchange_record() const {
  std::optional<ExchangeRecord> record = strategy_or_none(parts_.strategy).take_exchange_record();
  if (record && !parts_.backend.info().host_memory) record->waited_seconds.reset();
  return record;
}

std::optional<RankWaits> Trainer::take_waits(double seconds, double waited_seconds) {
  if (ranks().size() == 1 || runs_ahead_) return std::nullopt;
  RankWaits waits = gather_waits(ranks(), {number(), waited_seconds}, seconds);
  waits.meet_in_steps = !is_dealt();
  return waits;
}

}  // namespace plexaura
