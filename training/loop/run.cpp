#include "training/loop/run.h"

#include <fmt/format.h>
#include <utility>

#include "training/loop/signals.h"
#include "training/loop/trainer_checks.h"

namespace plexaura {

namespace {

TrainerParts with_store(const TrainerParts& parts, ParameterStore& store) {
  return {.model = parts.model,
          .store = store,
          .backend = parts.backend,
          .train = parts.train,
          .validation = parts.validation,
          .collective = parts.collective,
          .strategy = parts.strategy};
}

}  // namespace

Run::Run(const TrainerParts& given, TrainerOptions of_run)
    : store(given.store.share()),
      parts(with_store(given, store)),
      options(std::move(of_run)),
      folder(options.output, options.keep) {
  if (parts.collective != nullptr) return;
  if (parts.strategy != nullptr)
    throw UserError(
        "the Trainer has a strategy and no ranks; set TrainerParts::collective to the communicator of the "
        "strategy, without which each rank would train on all samples");
  parts.collective = &alone;
}

void Progress::go_to(std::int64_t step_in_epoch) {
  if (step_in_epoch == place.step_in_epoch) return;
  place.step += step_in_epoch - place.step_in_epoch;
  place.step_in_epoch = step_in_epoch;
  place.saved = false;
}

void Progress::end_epoch() {
  place.step_in_epoch = 0;
  ++place.epoch;
  place.epoch_ended = true;
}

void StopRequest::look_for_signal() {
  if (const int received = StopSignals::received(); received != 0) signal = received;
}

void RunClock::begin_epoch() {
  epoch_begin = seconds_now();
  waited_before = seconds_waited();
}

// If each rank makes its own steps, a step keeps its number of parts after ranks were lost.
void share_out(Run& run, const StrategyInUse& strategy) {
  Division& division = run.division;
  const TrainerOptions& options = run.options;
  division.protocol = &protocol_of(strategy.parts);
  std::int64_t parts = division.taken ? division.taken->parts : run.ranks().size();
  if (!division.protocol->meets_in_steps && division.train.samples > 0) parts = division.train.ranks;
  division.train = {0, options.batch_size, parts, options.micro_batches};
  division.validation = {0, options.batch_size, run.ranks().size(), options.micro_batches};
  together(run.ranks(), "the division of the data", [&] {
    check_parts(run.parts);
    check_options(options);
    if (!options.is_spare) check_strategy(strategy, run.ranks());
    division.train.samples = run.parts.train->size();
    if (run.parts.validation) division.validation.samples = run.parts.validation->size();
    division.train.check();
  });
}

void make_programs(Run& run, const StrategyInUse& strategy) {
  const TrainerOptions& options = run.options;
  const ProgramOptions of_programs{.optimizer = options.optimizer,
                                   .bucket_bytes = options.bucket_bytes,
                                   .watch = options.watch,
                                   .profile = options.profile,
                                   .tuner = options.tuner,
                                   .own_parts = run.division.taken ? run.division.taken->own : Slice{},
                                   .draws_parts = !run.division.protocol->meets_in_steps,
                                   .parts_may_move = options.parts_may_move,
                                   .buckets_change_bits = options.buckets_change_bits,
                                   .strict = options.strict};
  run.programs = std::make_unique<TrainingPrograms>(run.parts.model, run.parts.train->fields(), run.store,
                                                    run.parts.backend, run.ranks(), strategy,
                                                    run.division.train, run.division.validation, of_programs);
  run.runner =
      std::make_unique<StepRunner>(*run.programs, run.ranks(), options.watch, options.report_seconds);
}

void drop_programs(Run& run) {
  run.runner.reset();
  run.programs.reset();
}

void require_programs(const Run& run) {
  if (run.programs == nullptr)
    throw UserError(
        "the Trainer has no programs, because it belongs to a spare, or its last regroup() has failed; call "
        "regroup() "
        "with the ranks that are left");
}

RunState state_of(const Run& run) {
  const RunPlace& place = run.progress.place;
  const TrainerOptions& options = run.options;
  return {.step = place.step,
          .epoch = place.epoch,
          .step_in_epoch = place.step_in_epoch,
          .seed = options.seed,
          .epoch_loss = place.epoch_loss,
          .epoch_samples = place.epoch_samples,
          .data_origin = options.data_origin,
          .samples = run.division.train.samples,
          .batch_size = run.division.train.batch_size,
          .optimizer = std::string(optimizer_name(options.optimizer)),
          .settings = options.settings,
          .shuffle = options.shuffle,
          .kernels = fmt::format("{:016x}", run.programs->own_kernels_hash()),
          .kernel_times = run.programs->kernel_times(),
          .bucket_bytes = std::to_string(options.bucket_bytes),
          .compression = options.compression,
          .notes = options.notes};
}

LoaderOptions reading(const Run& run) {
  const TrainerOptions& options = run.options;
  return {.batch_size = options.batch_size,
          .ranks = run.ranks().size(),
          .rank = run.ranks().rank(),
          .micro_batches = options.micro_batches,
          .seed = static_cast<std::uint64_t>(options.seed),
          .shuffle = options.shuffle,
          .workers = options.workers,
          .prefetch = options.prefetch,
          .on_error = options.on_error};
}

LoaderOptions reading_on(const Run& run) {
  LoaderOptions options = reading(run);
  options.first_epoch = run.progress.place.epoch;
  options.first_step = run.progress.place.step_in_epoch;
  options.ranks = run.division.train.ranks;
  if (run.division.taken) {
    options.rank = run.division.taken->own.first;
    options.own_parts = run.division.taken->own.count;
  }
  options.memory = run.programs->feed_memory();
  return options;
}

}  // namespace plexaura
