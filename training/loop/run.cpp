#include "training/loop/run.h"

#include <fmt/format.h>
#include <utility>

#include "core/step/training_step.h"
#include "training/loop/signals.h"
#include "training/loop/streams.h"

namespace plexaura {

namespace {

TrainerParts with_store(const TrainerParts& parts, ParameterStore& store) {
  return {.model = parts.model,
          .store = store,
          .backend = parts.backend,
          .train = parts.train,
          .validation = parts.validation,
          .collective = parts.collective,
          .strategy = parts.strategy,
          .stream = parts.stream};
}

void check_trainer_parts(const TrainerParts& parts) {
  if (!parts.model) throw UserError("the Trainer has no model; set TrainerParts::model");
  check_trains(parts.store);
  if (!parts.train && !parts.stream)
    throw UserError("the Trainer has no training data; set TrainerParts::train");
  if (parts.validation && parts.validation->fields() != fields_of(parts))
    throw UserError(
        fmt::format("samples of the training data are {} and those of the validation data {}; give "
                    "both the same fields",
                    to_string(fields_of(parts)), to_string(parts.validation->fields())));
}

// Throws UserError for several ranks without a strategy, which would train independently without notice; for
// a rank that serves instead of training; and for `averages` of weights if ranks make updates of their own.
// Throws what check_strategy_parts() throws.
void check_trainer_strategy(const StrategyInUse& strategy, const Collective& ranks, bool averages) {
  if (strategy.strategy == nullptr && ranks.size() > 1)
    throw UserError(
        fmt::format("the Trainer has {} ranks and no strategy; set TrainerParts::strategy, for one to "
                    "make_strategy({{}}, ranks)",
                    ranks.size()));
  check_strategy_parts(strategy.parts);
  if (averages && (strategy.parts.scope == GradientScope::local || strategy.parts.courier != nullptr))
    throw UserError(
        "OptimizerSpec::ema, in YAML training.ema, averages the weights over updates, and with this strategy "
        "the ranks do not all make the same ones; leave it out, or choose the strategy allreduce");
  if (strategy.parts.server != nullptr)
    throw UserError(fmt::format(
        "the strategy lets rank {} serve, and a Trainer only trains; with Roles "
        "(distributed/communicator/roles.h) call Roles::serve() there, and give the Trainers of the other "
        "ranks Roles::training(), or choose a strategy with which all ranks train",
        ranks.rank()));
}

void check_trainer_options(const TrainerOptions& options) {
  const auto require = [](const char* what, std::int64_t value, std::int64_t least) {
    if (value < least)
      throw UserError(fmt::format("the Trainer's {} is {}; give {} or more", what, value, least));
  };
  require("number of epochs", options.epochs, 0);
  require("number of steps", options.steps.value_or(0), 0);
  require("number of checkpoints to keep", options.keep, 1);
  require("save_every", options.save_every.value_or(1), 1);
  require("bucket_bytes", options.bucket_bytes, 1);
  require("verify_every", options.verify_every, 0);
  require("memory", options.memory.value_or(1), 1);
  if (options.goal) require("patience of the goal", options.goal->patience.value_or(1), 1);
  if (options.ends_on_divergence && !options.output.empty())
    throw UserError(
        "the Trainer has ends_on_divergence and an output, into which weights that are not finite would be "
        "saved; leave out one of them");
  if (!(options.report_seconds >= 0))
    throw UserError(
        fmt::format("the Trainer's report_seconds is {}; give 0 or more", options.report_seconds));
}

void check_needs_no_validation(const TrainerOptions& options) {
  constexpr std::string_view remedy =
      "there are no samples for it; give some, in YAML with data.validation_share or data.validation_limit";
  if (options.learning_rate.plateau() != nullptr)
    throw UserError(
        fmt::format("the schedule of the learning rate is a plateau, which observes the validation, and {}, "
                    "or choose another schedule",
                    remedy));
  if (options.goal)
    throw UserError(
        fmt::format("epochs are to be compared by the {} of the validation, and {}, or leave out "
                    "TrainerOptions::goal, in YAML training.goal",
                    options.goal->metric, remedy));
}

}  // namespace

Run::Run(const TrainerParts& given, TrainerOptions of_run)
    : store(given.store.share()),
      parts(with_store(given, store)),
      options(std::move(of_run)),
      folder(options.output, options.keep) {
  if (options.goal) progress.goal_name = name_of(options.goal->metric, options.goal->mode);
  if (parts.collective != nullptr) return;
  if (parts.strategy != nullptr)
    throw UserError(
        "the Trainer has a strategy and no ranks; set TrainerParts::collective to the communicator of the "
        "strategy, without which each rank would train on all samples");
  parts.collective = &alone;
}

std::vector<Field> fields_of(const TrainerParts& parts) {
  return parts.stream ? parts.stream->fields() : parts.train->fields();
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

// Divides the data among the ranks. If each rank makes its own steps, a step keeps its number of parts after
// ranks were lost.
void share_out(Run& run, const StrategyInUse& strategy) {
  Division& division = run.division;
  const TrainerOptions& options = run.options;
  division.protocol = &protocol_of(strategy.parts);
  std::int64_t parts = division.taken ? division.taken->parts : run.ranks().size();
  if (!division.protocol->meets_in_steps && division.train.samples > 0) parts = division.train.ranks;
  division.train = {0, options.batch_size, parts, options.micro_batches};
  division.validation = {0, options.batch_size, run.ranks().size(), options.micro_batches};
  together(run.ranks(), "the division of the data", [&] {
    check_trainer_parts(run.parts);
    check_trainer_options(options);
    check_stream(run.parts, options, strategy.parts);
    if (!options.is_spare) check_trainer_strategy(strategy, run.ranks(), options.optimizer.ema.has_value());
    division.train.samples =
        run.parts.stream ? options.steps_per_epoch * options.batch_size : run.parts.train->size();
    if (run.parts.validation) division.validation.samples = run.parts.validation->size();
    division.train.check();
    if (division.validation.samples == 0) check_needs_no_validation(options);
  });
  if (run.parts.stream) run.progress.streamed.resize(run.parts.stream->is_divided() ? parts : 1);
}

namespace {

// Throws UserError for names of metrics that the model does not report.
void check_metric_names(const Run& run) {
  const Plateau* const plateau = run.options.learning_rate.plateau();
  if (plateau == nullptr && !run.options.goal) return;
  together(run.ranks(), "the names of metrics", [&] {
    const Evaluator& evaluator = run.programs->evaluator();
    const auto metrics = evaluator.values_of(std::vector<double>(evaluator.sum_count()), 1);
    if (plateau != nullptr) validation_value(plateau->metric, 0, metrics);
    if (run.options.goal) validation_value(run.options.goal->metric, 0, metrics);
  });
}

}  // namespace

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
                                   .strict = options.strict,
                                   .memory = options.memory};
  run.programs = std::make_unique<TrainingPrograms>(run.parts.model, fields_of(run.parts), run.store,
                                                    run.parts.backend, run.ranks(), strategy,
                                                    run.division.train, run.division.validation, of_programs);
  check_metric_names(run);
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
        "regroup() with the ranks that are left");
}

double validation_value(std::string_view name, double loss, std::span<const MetricValue> metrics) {
  std::vector<MetricValue> all{{"loss", loss}};
  all.insert(all.end(), metrics.begin(), metrics.end());
  return value_of(name, all);
}

RunState state_of(const Run& run) {
  const RunPlace& place = run.progress.place;
  const TrainerOptions& options = run.options;
  const Plateau* const plateau = options.learning_rate.plateau();
  return {.step = place.step,
          .epoch = place.epoch,
          .step_in_epoch = place.step_in_epoch,
          .seed = options.seed,
          .epoch_loss = place.epoch_loss,
          .epoch_samples = place.epoch_samples,
          .data_origin = options.data_origin,
          .samples = run.division.train.samples,
          .batch_size = run.division.train.batch_size,
          .optimizer = optimizer_name(options.optimizer),
          .settings = options.settings,
          .shuffle = options.shuffle,
          .kernels = fmt::format("{:016x}", run.programs->own_kernels_hash()),
          .kernel_times = run.programs->kernel_times(),
          .bucket_bytes = std::to_string(options.bucket_bytes),
          .compression = options.compression,
          .plateau = plateau != nullptr ? std::optional(place.plateau) : std::nullopt,
          .plateau_metric = plateau != nullptr ? name_of(plateau->metric, plateau->mode) : std::string(),
          .goal = run.progress.goal_name,
          .best = place.best,
          .streamed = run.progress.streamed,
          .notes = options.notes};
}

LoaderOptions reading(const Run& run) {
  const TrainerOptions& options = run.options;
  return {.batch_size = options.batch_size,
          .ranks = run.ranks().size(),
          .rank = run.ranks().rank(),
          .micro_batches = run.division.train.micro_batches,
          .seed = static_cast<std::uint64_t>(options.seed),
          .shuffle = options.shuffle,
          .weights = options.weights,
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
