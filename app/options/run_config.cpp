#include "app/options/run_config.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>

#include "app/options/byte_count.h"
#include "app/options/distributed_config.h"
#include "app/options/run_keys.h"
#include "app/options/usable_number.h"

namespace plexaura {

namespace {

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
    check_rate_usable(yaml, group.options.rate, peak, precision);
  }
  return groups;
}

// Returns the peak of the learning rate. The file gives the rate for base_batch_size, and the peak grows in
// proportion to the batch size, as in Goyal et al., arXiv:1706.02677.
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

std::optional<EpochGoal> make_goal(const Section& yaml, const TrainingInput& input) {
  if (!input.goal_metric) return std::nullopt;
  return EpochGoal{*input.goal_metric, mode_of(yaml, *input.goal_metric, input.goal_mode), input.patience};
}

RunLength length_of_run(const TrainingInput& input, std::int64_t epochs) {
  const std::int64_t batch = *input.samples_of_batch();
  return {.epochs = epochs,
          .steps_per_epoch = (std::max(input.samples, std::int64_t{1}) + batch - 1) / batch,
          .is_known = input.samples > 0};
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
  run.types = input.precision.types;
  run.finds_precision = input.precision.is_auto;
  TrainerOptions& trainer = run.trainer;
  trainer.batch_size = batch_size_of(training, input);
  if (input.memory) trainer.memory = bytes_in(training, "memory", *input.memory);
  const Section optimizer = training.section("optimizer");
  const double peak = peak_rate(optimizer, input, run.types.values);
  if (optimizer.has("groups") && input.groups.empty())
    throw optimizer.error("groups", "is an empty list, which has no effect; remove it, or give groups");
  trainer.optimizer.groups = read_groups(input.groups, peak, run.types.values);
  check_optimizer(optimizer, trainer.optimizer, run.types.values);
  trainer.learning_rate = make_schedule(training.section("schedule"), input.schedule, peak, run.types.values,
                                        length_of_run(input, trainer.epochs));
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
