#include "training/loop/trainer.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "training/loop/continue_run.h"
#include "training/loop/epochs.h"
#include "training/loop/run.h"
#include "training/loop/signals.h"
#include "training/ranks/store_hash.h"

namespace plexaura {

Trainer::Trainer(TrainerParts parts, TrainerOptions options)
    : run_(std::make_unique<Run>(parts, std::move(options))) {
  Run& run = *run_;
  const StrategyInUse strategy(parts.strategy);
  share_out(run, strategy);
  if (run.options.is_spare) {
    run.progress.place.step = RunPlace::nowhere;
    return;
  }
  run.folder.lock(run.ranks());
  make_programs(run, strategy);
  run.store.reset_states();
  if (run.store.types().scales_loss())
    run.store.write_loss_scale(run.programs->first_loss_scale(run.division.train));
}

Trainer::~Trainer() = default;

const TrainingPrograms& Trainer::programs() const {
  require_programs(*run_);
  return *run_->programs;
}

std::map<std::string, std::string> Trainer::facts() const {
  const TrainingPrograms& made = programs();
  const std::int64_t step = run_->progress.place.step;
  std::map<std::string, std::string> facts{{"seed", std::to_string(run_->options.seed)},
                                           {"the first step", std::to_string(step + 1)},
                                           {"the plan", fmt::format("{:016x}", made.plan_hash())}};
  if (!made.strategy().parts.realigns_weights)
    facts["the plan's kernels"] = fmt::format("{:016x}", made.kernels_hash());
  if (!run_->options.compression.empty()) facts["the chosen compression"] = run_->options.compression;
  if (run_->history.own_state) return facts;
  facts["initial weights"] = fmt::format("{:016x}", weights_hash(run_->store));
  if (step > 0) facts["the optimizer's state"] = fmt::format("{:016x}", states_hash(run_->store));
  return facts;
}

bool Trainer::resume() {
  if (ran_)
    throw UserError("Trainer::resume was called after run; call it before, it loads what run begins with");
  require_programs(*run_);
  const auto saved = plexaura::resume(*run_);
  if (!saved) return false;
  continues_run_ = true;
  const RunState now = state_of(*run_);
  const auto differ = [](const std::string& before, const std::string& after) {
    return !before.empty() && before != after;
  };
  has_other_kernels_ = differ(saved->kernels, now.kernels);
  has_other_buckets_ = has_other_kernels_ && differ(saved->bucket_bytes, now.bucket_bytes);
  return true;
}

// Serves described devices: see core/device/described_backend.h.
void Trainer::step_on_zeros() {
  require_programs(*run_);
  const auto memory = run_->programs->feed_memory();
  Step step = step_without_fields(run_->division.train, 0, 0, run_->ranks().rank());
  for (MicroBatch& batch : step.micro_batches) {
    batch.fields = make_fields(fields_of(run_->parts), batch.samples, memory.get());
    for (Tensor& field : batch.fields) std::fill_n(field.data(), field.bytes(), std::byte{0});
  }
  run_->programs->step().run(
      run_->runner->with_batches(step, {.global_samples = step.global_samples, .seed = run_->options.seed}));
}

TrainingResult Trainer::run() { return run(Observers::List{}); }

TrainingResult Trainer::run(TrainingObserver& observer) { return run(Observers::List{observer}); }

TrainingResult Trainer::run(std::vector<std::reference_wrapper<TrainingObserver>> observers) {
  require_programs(*run_);
  if (ran_.exchange(true))
    throw UserError(
        "Trainer::run was called twice; a Trainer runs once: to train on, make another one, whose "
        "run begins with the store's weights");
  if (!continues_run_ && !run_->options.replace) run_->folder.check_new(run_->ranks());
  run_->observers.set(std::move(observers));
  const StopSignals signals;
  run_->division.protocol->loop(*run_);
  return run_->result;
}

void Trainer::end_early() { run_->stop.asked = true; }

void Trainer::regroup(Collective& collective, Strategy* strategy, std::optional<TakenParts> taken) {
  plexaura::regroup(*run_, collective, strategy, taken);
  continues_run_ = true;
  ran_ = false;
}

void Trainer::step_aside() { plexaura::step_aside(*run_); }

Validation Trainer::validate() {
  require_programs(*run_);
  if (ran_) run_->programs->step().await_weights();  // before run() the strategy has not begun
  return plexaura::validate(*run_);
}

}  // namespace plexaura
