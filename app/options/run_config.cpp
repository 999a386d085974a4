#include "app/options/run_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <system_error>

#include "app/options/distributed_config.h"
#include "app/options/run_keys.h"

namespace plexaura {

namespace {

// Returns "0" if the value is not zero but kernels may treat it as zero in `precision`, as they may with
// denormal numbers; "infinite" if it overflows in `precision`; and an empty text for all other values.
std::string_view lost_as(double value, DType precision) {
  const bool is_narrow = precision == DType::float32;
  const double least = is_narrow ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  const double rounded = is_narrow ? static_cast<float>(value) : value;
  if (std::isinf(rounded)) return "infinite";
  return value != 0 && rounded < least ? "0" : "";
}

void check_usable(const Section& optimizer, std::string_view key, double value, DType precision) {
  const std::string_view lost = lost_as(value, precision);
  if (!lost.empty())
    throw optimizer.error(key, fmt::format("is {}, which is {} in {}; give a {} number", value, lost,
                                           name_of(precision), lost == "0" ? "larger" : "smaller"));
}

void check_optimizer(const Section& yaml, const OptimizerSpec& optimizer, DType precision) {
  check_usable(yaml, "weight_decay", optimizer.weight_decay, precision);
  check_usable(yaml, "max_gradient_norm", optimizer.max_gradient_norm, precision);
  check_usable(yaml, "trust_coefficient", optimizer.trust_coefficient, precision);
  check_usable(yaml, "epsilon", optimizer.epsilon, precision);
  check_usable(yaml, "lr_decay", optimizer.lr_decay, precision);
  check_usable(yaml, "initial_accumulator", optimizer.initial_accumulator, precision);
  if (optimizer.nesterov && optimizer.momentum == 0) throw yaml.error("nesterov", "needs a momentum above 0");
}

std::vector<ParameterGroup> read_groups(const std::vector<Section>& sections, double peak, DType precision) {
  std::vector<ParameterGroup> groups;
  for (const Section& yaml : sections) {
    ParameterGroup& group = groups.emplace_back();
    OptimizerSpec rule;
    const bool has_rule = yaml.has("optimizer");
    read_keys(yaml, group_keys(group, has_rule ? &rule : nullptr));
    if (has_rule) {
      check_optimizer(yaml.section("optimizer"), rule, precision);
      group.options.optimizer = rule;
    }
    check_usable(yaml, "decay", group.options.decay.value_or(0), precision);
    const double rate = peak * group.options.rate;
    if (const std::string_view lost = lost_as(rate, precision); !lost.empty())
      throw yaml.error("rate", fmt::format("is {}, which makes the learning rate {} in {}; give a {} number",
                                           group.options.rate, lost, name_of(precision),
                                           lost == "0" ? "larger" : "smaller"));
  }
  return groups;
}

// Returns the learning rate, which is given for base_batch_size and grows in proportion to the batch size, as
// in Goyal et al., arXiv:1706.02677.
double peak_rate(const Section& optimizer, const TrainingInput& input, DType precision) {
  const std::int64_t batch_size = input.samples_of_step();
  const double rate = input.learning_rate;
  const std::int64_t base = input.base_batch_size;
  const double scaled = rate * (static_cast<double>(batch_size) / static_cast<double>(base));
  const std::string_view lost = lost_as(scaled, precision);
  if (lost.empty()) return scaled;
  check_usable(optimizer, "learning_rate", rate, precision);
  throw optimizer.error(
      "base_batch_size",
      fmt::format(
          "is {} and the batch has {} samples, so that the learning rate {} becomes {}, which is {} in {}; "
          "give a {} number",
          base, batch_size, rate, scaled, lost, name_of(precision), lost == "0" ? "smaller" : "larger"));
}

// Returns whether a metric is to fall or to rise: as given, or as its name says.
Plateau::Mode mode_of(const Section& yaml, const std::string& metric,
                      const std::optional<std::string>& given) {
  if (given) return *given == "max" ? Plateau::max : Plateau::min;
  if (const auto mode = mode_by_name(metric)) return *mode;
  throw yaml.error(
      "mode", fmt::format("is missing, and does not follow from the name '{}' of the metric; give max if it "
                          "is to rise, and otherwise min",
                          metric));
}

std::optional<EpochGoal> make_goal(const Section& yaml, const TrainingInput& input) {
  if (!input.goal_metric) return std::nullopt;
  return EpochGoal{*input.goal_metric, mode_of(yaml, *input.goal_metric, input.goal_mode), input.patience};
}

void check_at_most_peak(const Section& yaml, const char* key, double rate, double peak) {
  if (rate > peak)
    throw yaml.error(
        key,
        fmt::format("is {}, above the peak: training.optimizer makes the learning rate {}; give at most that",
                    rate, peak));
}

// Makes a schedule in steps from the epochs in the file.
Schedule make_schedule(const Section& yaml, const TrainingInput& input, double peak, std::int64_t epochs) {
  const std::int64_t batch = *input.samples_of_batch();
  const std::int64_t steps_per_epoch = (std::max(input.samples, std::int64_t{1}) + batch - 1) / batch;
  const auto steps = [&](double of_epochs) {
    return std::llround(of_epochs * static_cast<double>(steps_per_epoch));
  };
  Schedule::Options options{.peak = peak, .warmup_steps = steps(input.warmup_epochs)};
  if (input.schedule == ScheduleName::step)
    options.decay = StepDecay{std::max<std::int64_t>(steps(input.every_epochs), 1), input.step.gamma};
  if (input.schedule == ScheduleName::cosine) {
    check_at_most_peak(yaml, "floor", input.cosine.floor, peak);
    options.decay = CosineDecay{steps_per_epoch * epochs, input.cosine.floor};
  }
  if (input.schedule == ScheduleName::plateau) {
    check_at_most_peak(yaml, "min_lr", input.plateau.min_lr, peak);
    Plateau plateau = input.plateau;
    plateau.mode = mode_of(yaml, plateau.metric, input.plateau_mode);
    options.decay = plateau;
  }
  if (input.schedule == ScheduleName::one_cycle) {
    OneCycle cycle = input.one_cycle;
    cycle.steps = steps_per_epoch * epochs;
    options.decay = cycle;
  }
  return Schedule(options);
}

std::int64_t batch_size_of(const Section& training, const TrainingInput& input) {
  if (input.batch_size && input.batch_per_rank)
    throw training.error("batch_size", "and batch_per_rank are both given; give one of them");
  if (!input.batch_size && !input.batch_per_rank)
    throw training.error(
        "batch_size",
        "is missing; give the samples of a step over all ranks, or those of one rank as batch_per_rank");
  return *input.samples_of_batch();
}

void read_training(const Section& training, TrainingInput input, RunOptions& run) {
  read_keys(training, training_keys(input, run));
  TrainerOptions& trainer = run.trainer;
  trainer.batch_size = batch_size_of(training, input);
  const Section optimizer = training.section("optimizer");
  const double peak = peak_rate(optimizer, input, run.types.values);
  trainer.optimizer.groups = read_groups(input.groups, peak, run.types.values);
  check_optimizer(optimizer, trainer.optimizer, run.types.values);
  trainer.learning_rate = make_schedule(training.section("schedule"), input, peak, trainer.epochs);
  trainer.goal = make_goal(training.section("goal"), input);
}

void read_output(const Section& output, TrainerOptions& trainer) {
  read_keys(output, output_keys(trainer));
  std::error_code error;
  if (!trainer.output.empty() && std::filesystem::exists(trainer.output / "state.safetensors", error))
    throw output.error("dir", fmt::format("'{}' is a checkpoint; name the folder that contains it",
                                          trainer.output.string()));
}

}  // namespace

std::filesystem::path read_output_folder(const Config& config) {
  TrainerOptions trainer;
  read_output(config.section("output"), trainer);
  return trainer.output;
}

RunOptions read_options(const Config& config, std::int64_t samples, int ranks) {
  RunOptions run;
  read_training(config.section("training"), {.samples = samples, .ranks = ranks}, run);
  read_keys(config.section("data"), reading_keys(run.trainer));
  read_distributed(config.section("distributed"), run);
  read_output(config.section("output"), run.trainer);
  return run;
}

}  // namespace plexaura
