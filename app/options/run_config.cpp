#include "app/options/run_config.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <system_error>

#include "app/options/distributed_config.h"

namespace plexaura {

namespace {

// No run needs more, and products of these with ranks or with samples still are 64-bit numbers.
constexpr std::int64_t largest_batch = std::int64_t{1} << 31;
constexpr std::int64_t most_epochs = 1'000'000'000;

// Returns "0" if kernels may take the value for zero in `precision`, as they may with denormal numbers, "infinite" if it overflows
// there, and an empty text for all other values.
std::string_view lost_as(double value, DType precision) {
  const bool is_narrow = precision == DType::float32;
  const double least = is_narrow ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  const double rounded = is_narrow ? static_cast<float>(value) : value;
  if (std::isinf(rounded)) return "infinite";
  return value != 0 && rounded < least ? "0" : "";
}

double usable(const Section& optimizer, std::string_view key, double value, DType precision) {
  const std::string_view lost = lost_as(value, precision);
  if (lost.empty()) return value;
  throw optimizer.error(key, fmt::format("is {}, which is {} in {}; give a {} number", value, lost,
                                         name_of(precision), lost == "0" ? "larger" : "smaller"));
}

// That for a batch of base_batch_size grows with the batch, as in Goyal et al., arXiv:1706.02677.
double read_learning_rate(const Section& optimizer, DType precision, std::int64_t batch_size) {
  const double rate =
      optimizer.number("learning_rate", {.above = 0}, "one learning rate for all parameters, a number");
  const std::int64_t base =
      optimizer.integer_or("base_batch_size", batch_size, {.minimum = 1, .maximum = largest_batch});
  const double scaled = rate * (static_cast<double>(batch_size) / static_cast<double>(base));
  const std::string_view lost = lost_as(scaled, precision);
  if (lost.empty()) return scaled;
  usable(optimizer, "learning_rate", rate, precision);
  throw optimizer.error(
      "base_batch_size",
      fmt::format(
          "is {} and the batch has {} samples, so that the learning rate {} becomes {}, which is {} in {}; "
          "give a {} number",
          base, batch_size, rate, scaled, lost, name_of(precision), lost == "0" ? "smaller" : "larger"));
}

OptimizerSpec read_optimizer(const Section& training, DType precision, std::int64_t batch_size,
                             double& learning_rate) {
  const Section yaml = training.section("optimizer");
  OptimizerSpec optimizer;
  using Kind = OptimizerSpec::Kind;
  const std::map<std::string, Kind> kinds{{"sgd", Kind::sgd},
                                          {"adam", Kind::adam},
                                          {"adamw", Kind::adamw},
                                          {"lars", Kind::lars},
                                          {"lamb", Kind::lamb}};
  const std::string name = yaml.choice("name", {"sgd", "adam", "adamw", "lars", "lamb"});
  optimizer.kind = kinds.at(name);
  const std::string because = "the optimizer is " + name;
  learning_rate = read_learning_rate(yaml, precision, batch_size);
  const auto number_or = [&](std::string_view key, double otherwise, NumberRange range) {
    return usable(yaml, key, yaml.number_or(key, otherwise, range), precision);
  };
  optimizer.weight_decay = number_or("weight_decay", 0, {.minimum = 0});
  optimizer.max_gradient_norm = number_or("max_gradient_norm", 0, {.minimum = 0});
  if (optimizer.kind == Kind::lars)
    optimizer.trust_coefficient = number_or("trust_coefficient", optimizer.trust_coefficient, {.above = 0});
  else
    yaml.refuse({"trust_coefficient"}, because);
  if (optimizer.kind == Kind::sgd || optimizer.kind == Kind::lars) {
    optimizer.momentum = yaml.number_or("momentum", 0, {.minimum = 0, .below = 1});
    optimizer.nesterov = yaml.flag_or("nesterov", false);
    if (optimizer.nesterov && optimizer.momentum == 0)
      throw yaml.error("nesterov", "needs a momentum above 0");
    yaml.refuse({"beta1", "beta2", "epsilon"}, because);
    return optimizer;
  }
  yaml.refuse({"momentum", "nesterov"}, because);
  optimizer.beta1 = yaml.number_or("beta1", 0.9, {.minimum = 0, .below = 1});
  optimizer.beta2 = yaml.number_or("beta2", 0.999, {.minimum = 0, .below = 1});
  optimizer.epsilon = number_or("epsilon", 1e-8, {.above = 0});
  return optimizer;
}

// Epochs in the file, steps in the schedule.
Schedule read_schedule(const Section& training, double peak, std::int64_t steps_per_epoch,
                       std::int64_t epochs) {
  const Section yaml = training.section("schedule");
  const auto steps = [&](double of_epochs) {
    return std::llround(of_epochs * static_cast<double>(steps_per_epoch));
  };
  Schedule::Options options{.peak = peak};
  const std::string name = yaml.choice_or("name", "constant", {"constant", "step", "cosine", "one_cycle"});
  const std::string because = "the schedule is " + name;
  if (name != "step") yaml.refuse({"every_epochs", "gamma"}, because);
  if (name != "cosine") yaml.refuse({"floor"}, because);
  if (name != "one_cycle") yaml.refuse({"rising", "start_divisor", "end_divisor"}, because);
  if (name == "one_cycle") yaml.refuse({"warmup_epochs"}, because);
  if (name == "step")
    options.decay = StepDecay{
        std::max<std::int64_t>(steps(yaml.number("every_epochs", {.maximum = most_epochs, .above = 0})), 1),
        yaml.number_or("gamma", 0.1, {.maximum = 1, .above = 0})};
  if (name == "cosine") {
    const double floor = yaml.number_or("floor", 0, {.minimum = 0});
    if (floor > peak)
      throw yaml.error(
          "floor",
          fmt::format(
              "is {}, above the peak: training.optimizer makes the learning rate {}; give at most that",
              floor, peak));
    options.decay = CosineDecay{steps_per_epoch * epochs, floor};
  }
  if (name == "one_cycle") {
    OneCycle cycle{.steps = steps_per_epoch * epochs};
    cycle.rising = yaml.number_or("rising", cycle.rising, {.minimum = 0, .maximum = 1});
    cycle.start_divisor = yaml.number_or("start_divisor", cycle.start_divisor, {.minimum = 1});
    cycle.end_divisor = yaml.number_or("end_divisor", cycle.end_divisor, {.minimum = 1});
    options.decay = cycle;
  } else {
    options.warmup_steps =
        steps(yaml.number_or("warmup_epochs", 0, {.minimum = 0, .maximum = static_cast<double>(epochs)}));
  }
  return Schedule(options);
}

std::int64_t read_batch_size(const Section& training, int ranks) {
  const bool whole = training.has("batch_size");
  const bool per_rank = training.has("batch_per_rank");
  if (whole && per_rank)
    throw training.error("batch_size", "and batch_per_rank are both given; give one of them");
  if (per_rank)
    return training.integer("batch_per_rank", {.minimum = 1, .maximum = largest_batch / ranks}) * ranks;
  if (!whole)
    throw training.error(
        "batch_size",
        "is missing; give the samples of a step over all ranks, or those of one rank as batch_per_rank");
  return training.integer("batch_size", {.minimum = 1, .maximum = largest_batch});
}

// PLEXAURA_TUNING stands for the key where the file does not have it.
Tuning read_tuning(const Section& training) {
  const std::map<std::string, Tuning> modes{
      {"off", Tuning::off}, {"cached", Tuning::cached}, {"measure", Tuning::measure}};
  const char* preset = std::getenv("PLEXAURA_TUNING");
  if (preset != nullptr && !modes.contains(preset))
    throw UserError(
        fmt::format("the variable PLEXAURA_TUNING is '{}'; it must be cached, measure or off", preset));
  return modes.at(
      training.choice_or("tuning", preset == nullptr ? "cached" : preset, {"cached", "measure", "off"}));
}

}  // namespace

std::filesystem::path read_output_folder(const Section& output) {
  std::filesystem::path folder = output.location_or("dir", "");
  std::error_code error;
  if (!folder.empty() && std::filesystem::exists(folder / "state.safetensors", error))
    throw output.error("dir",
                       fmt::format("'{}' is a checkpoint; name the folder that it lies in", folder.string()));
  return folder;
}

ArenaTypes read_precision(const Section& training) {
  const std::map<std::string, ArenaTypes> choices{{"float32", ArenaTypes::all(DType::float32)},
                                                  {"float64", ArenaTypes::all(DType::float64)},
                                                  {"bfloat16", ArenaTypes::mixed(DType::bfloat16)},
                                                  {"float16", ArenaTypes::mixed(DType::float16)}};
  return choices.at(
      training.choice_or("precision", "float32", {"float32", "float64", "bfloat16", "float16"}));
}

RunOptions read_options(const Config& config, std::int64_t samples, int ranks) {
  const Section training = config.section("training");
  const Section data = config.section("data");
  const Section distributed = config.section("distributed");
  const Section output = config.section("output");
  RunOptions run;
  run.types = read_precision(training);
  TrainerOptions& trainer = run.trainer;
  trainer.batch_size = read_batch_size(training, ranks);
  if (samples == 0) samples = trainer.batch_size;
  trainer.micro_batches = training.integer_or(
      "micro_batches", 1, {.minimum = 1, .maximum = std::min(trainer.batch_size, samples)});
  trainer.epochs = training.integer("epochs", {.minimum = 1, .maximum = most_epochs});
  trainer.seed = training.integer_or("seed", 1, {.minimum = 0});
  trainer.watch = training.flag_or("watch", false);
  run.tuning = read_tuning(training);
  run.freeze = training.texts_or("freeze", {});
  double peak = 0;
  trainer.optimizer = read_optimizer(training, run.types.values, std::min(trainer.batch_size, samples), peak);
  const std::int64_t steps_per_epoch = (samples + trainer.batch_size - 1) / trainer.batch_size;
  trainer.learning_rate = read_schedule(training, peak, steps_per_epoch, trainer.epochs);
  trainer.shuffle = data.flag_or("shuffle", true);
  trainer.workers = data.integer_or("workers", 1, {.minimum = 0, .maximum = 256});
  trainer.prefetch = data.integer_or("prefetch", 2, {.minimum = 1, .maximum = 1024});
  trainer.on_error =
      data.choice_or("on_error", "fail", {"fail", "skip"}) == "skip" ? OnError::skip : OnError::fail;
  read_distributed(distributed, run);
  trainer.output = read_output_folder(output);
  trainer.keep = static_cast<int>(
      output.integer_or("keep", 1, {.minimum = 1, .maximum = std::numeric_limits<int>::max()}));
  if (output.has("every")) trainer.save_every = output.integer("every", {.minimum = 1});
  return run;
}

}  // namespace plexaura
