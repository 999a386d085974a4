#include "training/loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "core/base/clock.h"
#include "core/base/events.h"
#include "core/base/profile.h"
#include "training/data/loader.h"
#include "training/data/sent_steps.h"
#include "training/files/folder_lock.h"
#include "training/loop/signals.h"
#include "training/loop/step_runner.h"
#include "training/loop/trainer_checks.h"
#include "training/ranks/catch_up.h"
#include "training/ranks/on_rank_0.h"
#include "training/ranks/store_hash.h"
#include "training/ranks/tell_buckets.h"

namespace plexaura {

namespace {

TrainerParts with_store(TrainerParts parts, ParameterStore& store) {
  return {.model = std::move(parts.model),
          .store = store,
          .backend = parts.backend,
          .train = std::move(parts.train),
          .validation = std::move(parts.validation),
          .collective = parts.collective,
          .strategy = parts.strategy};
}

// The signal of the lowest rank that received one.
int agreed_signal(Collective& collective, int mine) {
  for (const std::string& text : collective.gather_all(std::to_string(mine), "the signal that ends the run"))
    if (text != "0") return std::stoi(text);
  return 0;
}

}  // namespace

TrainingObserver::~TrainingObserver() = default;
Trainer::~Trainer() = default;

Trainer::Trainer(TrainerParts parts, TrainerOptions options)
    : store_(parts.store.share()),
      parts_(with_store(std::move(parts), store_)),
      options_(std::move(options)) {
  if (parts_.collective == nullptr) {
    if (parts_.strategy != nullptr)
      throw UserError(
          "the Trainer has a strategy and no ranks; set TrainerParts::collective to the communicator of the "
          "strategy, without which each rank would train on all samples");
    parts_.collective = &alone_;
  }
  take_strategy(parts_.strategy);
  share_out();
  if (options_.is_spare) {
    state_.step = RunPlace::nowhere;
  } else {
    lock_output();
    make_programs();
    parts_.store.reset_states();
  }
  state_.seed = options_.seed;
  state_.data_origin = options_.data_origin;
  state_.samples = train_plan_.samples;
  state_.batch_size = train_plan_.batch_size;
  state_.optimizer = optimizer_name(options_.optimizer);
  state_.settings = options_.settings;
  state_.notes = options_.notes;
  state_.shuffle = options_.shuffle;
}

void Trainer::take_strategy(Strategy* strategy) {
  parts_.strategy = strategy;
  exchange_ = strategy_or_none(strategy).parts();
}

void Trainer::require_programs() const {
  if (programs_ == nullptr)
    throw UserError(
        "the Trainer has no programs, for it is a spare's, or its last regroup() has failed; call regroup() "
        "with the ranks that are left");
}

const TrainingPrograms& Trainer::programs() const {
  require_programs();
  return *programs_;
}

void Trainer::share_out() {
  std::int64_t parts = taken_ ? taken_->parts : ranks().size();
  if (is_dealt() && train_plan_.samples > 0) parts = train_plan_.ranks;
  train_plan_ = {0, options_.batch_size, parts, options_.micro_batches};
  validation_plan_ = {0, options_.batch_size, ranks().size(), options_.micro_batches};
  together(ranks(), "the division of the data", [&] {
    check_parts(parts_);
    check_options(options_);
    if (!options_.is_spare) check_strategy(parts_.strategy, exchange_, ranks());
    train_plan_.samples = parts_.train->size();
    if (parts_.validation) validation_plan_.samples = parts_.validation->size();
    train_plan_.check();
  });
}

void Trainer::make_programs() {
  programs_ = std::make_unique<TrainingPrograms>(
      parts_.model, parts_.train->fields(), parts_.store, parts_.backend, ranks(), parts_.strategy,
      train_plan_, validation_plan_,
      ProgramOptions{options_.optimizer, options_.bucket_bytes, options_.watch, options_.profile,
                     options_.tuner, taken_ ? taken_->own : Slice{}, options_.parts_may_move,
                     options_.buckets_change_bits});
  // A rank that has failed reads nothing until the next sum, and those to which a courier brings data would wait for it.
  runner_ = std::make_unique<StepRunner>(*programs_, ranks(), exchange_, options_.watch,
                                         exchange_.courier != nullptr ? 0 : options_.report_seconds);
  state_.kernels = fmt::format("{:016x}", programs_->own_kernels_hash());
  state_.kernel_times = programs_->kernel_times();
  state_.bucket_bytes = std::to_string(options_.bucket_bytes);
  state_.compression = options_.compression;
}

std::map<std::string, std::string> Trainer::facts() const {
  require_programs();
  std::map<std::string, std::string> facts{{"seed", std::to_string(options_.seed)},
                                           {"the first step", std::to_string(state_.step + 1)},
                                           {"the plan", fmt::format("{:016x}", programs_->plan_hash())}};
  if (!exchange_.realigns_weights)
    facts["the plan's kernels"] = fmt::format("{:016x}", programs_->kernels_hash());
  if (!state_.compression.empty()) facts["the chosen compression"] = state_.compression;
  if (own_state_) return facts;
  facts["initial weights"] = fmt::format("{:016x}", weights_hash(parts_.store));
  if (state_.step > 0) facts["the optimizer's state"] = fmt::format("{:016x}", states_hash(parts_.store));
  return facts;
}

bool Trainer::done() const {
  return state_.epoch >= options_.epochs || (options_.steps && state_.step >= *options_.steps);
}

LoaderOptions Trainer::reading() const {
  return {.batch_size = options_.batch_size,
          .ranks = parts_.collective->size(),
          .rank = parts_.collective->rank(),
          .micro_batches = options_.micro_batches,
          .seed = static_cast<std::uint64_t>(options_.seed),
          .shuffle = options_.shuffle,
          .workers = options_.workers,
          .prefetch = options_.prefetch,
          .on_error = options_.on_error};
}

// From where the run stands.
LoaderOptions Trainer::reading_on() const {
  LoaderOptions options = reading();
  options.first_epoch = state_.epoch;
  options.first_step = state_.step_in_epoch;
  options.parts = is_dealt() ? Parts::drawn : Parts::own;
  options.ranks = train_plan_.ranks;
  if (taken_) {
    options.rank = taken_->own.first;
    options.own_parts = taken_->own.count;
  }
  options.memory = programs_->feed_memory();
  return options;
}

TrainingResult Trainer::run() {
  TrainingObserver nobody;
  return run(nobody);
}

TrainingResult Trainer::run(TrainingObserver& observer) {
  require_programs();
  if (ran_.exchange(true))
    throw UserError(
        "Trainer::run was called twice; a Trainer runs once: to train on, make another one, whose "
        "run begins with the store's weights");
  const StopSignals signals;
  SampleStream stream(exchange_.courier, Courier::Stream::training);
  const std::unique_ptr<StepSource> steps = together(
      ranks(), "the start of training", [&] { return make_steps(parts_.train, reading_on(), stream); });
  Loader* const drawn = is_dealt() ? &dynamic_cast<Loader&>(*steps) : nullptr;
  begin_strategy();
  give_strategy_state();
  runs_ahead_ = any_rank_runs_ahead();
  verifies_ = options_.verify_every > 0 && ranks_stay_equal();
  const double begin = seconds_now();
  EpochClock epoch;
  while (true) {
    if (is_to_meet_) meet();
    if (epoch_ended_) {
      finish_epoch(observer, epoch);
      epoch = EpochClock{};
    } else if (is_save_due()) {
      save_now(observer);
    }
    if (done() || stopped_) break;
    if (const int signal = StopSignals::received(); signal != 0) noted_signal_ = signal;
    drawn != nullptr ? train_dealt(*drawn, observer) : train_step(*steps, observer);
  }
  note_step_under_way(observer);
  check_reported();
  programs_->step().await_weights();
  strategy_or_none(parts_.strategy).end();
  result_.steps_now = state_.step - first_step_;
  if (!saved_ && result_.steps_now > 0) save();
  if (stopped_)
    result_.signal = agreed_signal(ranks(), noted_signal_ != 0 ? noted_signal_ : StopSignals::received());
  result_.steps = state_.step;
  result_.images_per_second = rate_of_all_ranks();
  result_.stall_share = steps->stall_seconds() / std::max(seconds_now() - begin, 1e-9);
  if (options_.on_error == OnError::skip)
    result_.skipped = gather_skipped(ranks(), steps->skipped(), "the samples that could not be read");
  return result_;
}

// It may call all ranks, and so not where some may have failed before it.
void Trainer::begin_strategy() {
  if (parts_.strategy == nullptr) return;
  tell_buckets(programs_->step().border());
  std::exception_ptr mistake;  // most often the same on all ranks, of which one says it
  try {
    parts_.strategy->begin(programs_->step().border());
  } catch (const UserError&) {
    mistake = std::current_exception();
  }
  agree_on_error(ranks(), mistake, "the beginning of the strategy");
}

// Ranks that read late and ranks that do not would meet a failure at different points.
bool Trainer::any_rank_runs_ahead() {
  const std::string mine = parts_.backend.info().host_memory ? "waits" : "runs ahead";
  const auto all = ranks().gather_all(mine, "whether steps run ahead of their metrics");
  return std::ranges::find(all, "runs ahead") != all.end();
}

void Trainer::train_step(StepSource& steps, TrainingObserver& observer) {
  const StepUnderWay step = launch_step(steps);
  note_step_under_way(observer);
  under_way_ = step;
  const bool is_due = verifies_ && state_.step % options_.verify_every == 0;
  if (!runs_ahead_ || state_.step_in_epoch == 0 || is_due) note_step_under_way(observer);
  if (is_due) verify();
}

Trainer::StepUnderWay Trainer::launch_step(StepSource& steps) {
  tell_event(EventKind::step, state_.step + 1);
  const double begin = seconds_now();
  Step data;
  // What an observer of an earlier step threw on this rank alone goes the way of a failure in this one.
  std::exception_ptr failure = std::exchange(report_failure_, nullptr);
  if (!failure) failure = runner_->failure();
  if (!failure) try {
      data = next_step(steps);
    } catch (...) {
      failure = std::current_exception();
    }
  return launch(data, std::move(failure), begin);
}

// Counts the step before anything behind its update can fail: no update is made twice.
Trainer::StepUnderWay Trainer::launch(const Step& data, std::exception_ptr failure, double begin) {
  StepUnderWay step{.number = state_.step + 1,
                    .epoch = state_.epoch,
                    .step_in_epoch = state_.step_in_epoch,
                    .begin = begin};
  const bool is_last = state_.step_in_epoch + 1 == train_plan_.steps_per_epoch();
  try {
    step.ticket = runner_->launch(data, {.global_samples = data.global_samples,
                                         .step = step.number,
                                         .epoch = state_.epoch,
                                         .ends_epoch = is_last && !is_dealt(),
                                         .learning_rate = learning_rate(state_.epoch, state_.step_in_epoch),
                                         .seed = options_.seed,
                                         .stop = is_to_stop(),
                                         .failure = std::move(failure)});
  } catch (...) {
    if (programs_->step().updated_step() == step.number) advance();
    throw;
  }
  step.is_exchanging = exchange_.weights != nullptr && exchange_.weights->is_exchanging();
  advance();
  return step;
}

// A schedule counts the steps of epochs as this run has them: a checkpoint may be of a run with more or fewer.
double Trainer::learning_rate(std::int64_t epoch, std::int64_t step_in_epoch) const {
  return options_.learning_rate.learning_rate(epoch * train_plan_.steps_per_epoch() + step_in_epoch);
}

// To the place behind a step. Where the data is dealt out, other ranks may not have come there yet.
void Trainer::advance() {
  go_to(state_.step_in_epoch + 1);
  if (!is_dealt()) end_epoch_where_due();
}

void Trainer::go_to(std::int64_t step_in_epoch) {
  if (step_in_epoch == state_.step_in_epoch) return;
  state_.step += step_in_epoch - state_.step_in_epoch;
  state_.step_in_epoch = step_in_epoch;
  saved_ = false;
}

void Trainer::end_epoch_where_due() {
  if (state_.step_in_epoch < train_plan_.steps_per_epoch()) return;
  state_.step_in_epoch = 0;
  ++state_.epoch;
  epoch_ended_ = true;
}

Step Trainer::next_step(StepSource& steps) const {
  const ProfileSpan span(options_.profile, "waiting for data", "data");
  return steps.next();
}

void Trainer::finish_epoch(TrainingObserver& observer, const EpochClock& clock) {
  const double seconds = seconds_now() - clock.begin;
  const double waited_seconds = seconds_waited() - clock.waited_before;
  check_reported();
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> nothing(programs_->metric_names().size(), none);
  EpochRecord record{.epoch = state_.epoch - 1,
                     .train_loss = state_.epoch_loss / std::max(state_.epoch_samples, 1.0),
                     .val_loss = none,
                     .val_metrics = means_of(programs_->metric_names(), nothing, none),
                     .seconds = seconds,
                     .exchange = take_exchange_record(),
                     .waits = take_waits(seconds, waited_seconds)};
  if (validation_plan_.samples > 0) {
    Validation validation = validate();
    record.val_loss = validation.loss;
    record.val_metrics = std::move(validation.metrics);
    result_.skipped_validation = std::move(validation.skipped);
    check_loss(record.val_loss, fmt::format("the validation loss after step {}", state_.step), true);
  }
  result_.last_epoch = record;
  state_.epoch_loss = state_.epoch_samples = 0;
  epoch_ended_ = false;
  together(ranks(), fmt::format("the report of epoch {}", record.epoch + 1), [&] { observer.epoch(record); });
  stopped_ = any_rank_asked_to_end() || stopped_;
  save();
}

bool Trainer::any_rank_asked_to_end() {
  std::int64_t asking = asked_to_end_ ? 1 : 0;
  ranks().sum(DType::int64, reinterpret_cast<std::byte*>(&asking), 1, "whether the run ends early");
  return asking > 0;
}

Validation Trainer::validate() {
  require_programs();
  if (ran_) programs_->step().await_weights();  // before, the strategy has not begun
  return plexaura::validate(programs_->evaluator(), parts_.validation, ranks(), reading(), exchange_.courier);
}

// Before anything is computed, so that no work is lost. A rank that was lost may have held the folder, and be
// stopped instead of dead; so may one that was to take it over and was lost then.
void Trainer::lock_output() {
  constexpr const char* what = "the folder of checkpoints";
  if (ranks().rank() != 0) output_lock_.reset();
  const std::vector<std::string> group = ranks().gather_all(this_process(), what);
  std::vector<std::string> lost{std::exchange(writer_, group[0])};
  std::ranges::copy_if(processes_, std::back_inserter(lost), [&](const std::string& name) {
    return std::ranges::find(group, name) == group.end();
  });
  processes_.insert(group.begin(), group.end());
  together(ranks(), what, [&] {
    if (options_.output.empty() || ranks().rank() != 0 || output_lock_) return;
    prepare_checkpoints(options_.output);
    output_lock_ = std::make_unique<FolderLock>(options_.output, lost);
  });
}

// Somebody may have removed the folder, or remove it now.
void Trainer::write_checkpoint() {
  constexpr int tries = 3;
  for (int left = tries - 1;; --left) try {
      output_lock_->renew();
      return save_checkpoint(options_.output, parts_.store, state_, options_.keep);
    } catch (const RemovedError&) {
      if (left == 0) throw;
    }
}

// The loss may be finite where weights are not: an op can turn NaN into a number. They are looked at in any
// case.
void Trainer::save() {
  if (!options_.output.empty() || done() || stopped_) verify();
  programs_->step().await_weights();
  state_.strategy_ranks = ranks().size();
  if (parts_.strategy != nullptr && !options_.output.empty())
    state_.strategy = gather_strategy_state(
        ranks(),
        together(ranks(), "the state of the strategy", [&] { return state_of_strategy(exchange_.state); }),
        trains_for_itself() ? &parts_.store : nullptr);
  on_rank_0(ranks(), "saving a checkpoint", [&] {
    if (options_.output.empty()) return check_weights(parts_.store);
    write_checkpoint();
  });
  if (!options_.output.empty()) tell_event(EventKind::saved, state_.step);
  state_.strategy.clear();
  saved_ = true;
}

}  // namespace plexaura
