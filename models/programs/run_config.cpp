#include "models/programs/run_config.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <system_error>

#include "distributed/strategies/strategies.h"
#include "distributed/sums/sum_algorithms.h"

namespace plexaura {

namespace {

// No run needs more, and products of these with ranks or with samples still are 64-bit numbers.
constexpr std::int64_t largest_batch = std::int64_t{1} << 31;
constexpr std::int64_t most_epochs = 1'000'000'000;
constexpr double longest_deadline = 1'000'000;  // seconds: eleven days, and few enough for any clock

double read_learning_rate(const Section& optimizer, DType precision) {
  const double rate = optimizer.number("learning_rate", {.above = 0});
  const auto narrow = static_cast<float>(rate);
  if (precision == DType::float32 && (narrow == 0 || !std::isfinite(narrow)))
    throw optimizer.error("learning_rate",
                          fmt::format("is {}, which is {} in float32; give a {} number", rate,
                                      narrow == 0 ? "0" : "infinite", narrow == 0 ? "larger" : "smaller"));
  return rate;
}

OptimizerSpec read_optimizer(const Section& training, DType precision, double& learning_rate) {
  const Section yaml = training.section("optimizer");
  OptimizerSpec optimizer;
  const std::string name = yaml.choice("name", {"sgd", "adam", "adamw"});
  learning_rate = read_learning_rate(yaml, precision);
  optimizer.weight_decay = yaml.number_or("weight_decay", 0, {.minimum = 0});
  optimizer.max_gradient_norm = yaml.number_or("max_gradient_norm", 0, {.minimum = 0});
  if (name == "sgd") {
    optimizer.momentum = yaml.number_or("momentum", 0, {.minimum = 0, .below = 1});
    optimizer.nesterov = yaml.flag_or("nesterov", false);
    if (optimizer.nesterov && optimizer.momentum == 0)
      throw yaml.error("nesterov", "needs a momentum above 0");
    yaml.refuse({"beta1", "beta2", "epsilon"}, "the optimizer is sgd");
    return optimizer;
  }
  yaml.refuse({"momentum", "nesterov"}, "the optimizer is " + name);
  optimizer.kind = name == "adam" ? OptimizerSpec::Kind::adam : OptimizerSpec::Kind::adamw;
  optimizer.beta1 = yaml.number_or("beta1", 0.9, {.minimum = 0, .below = 1});
  optimizer.beta2 = yaml.number_or("beta2", 0.999, {.minimum = 0, .below = 1});
  optimizer.epsilon = yaml.number_or("epsilon", 1e-8, {.above = 0});
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
          fmt::format("is {}, above the peak: training.optimizer.learning_rate is {}; give at most that",
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

LocalOptions read_local(const Section& distributed, std::int64_t epochs) {
  LocalOptions local;
  local.every = distributed.integer_or("every", local.every, {.minimum = 1});
  local.first_epochs =
      distributed.integer_or("first_epochs", local.first_epochs, {.minimum = 0, .maximum = epochs - 1});
  const Section outer = distributed.section("outer");
  local.outer_learning_rate = outer.number_or("learning_rate", local.outer_learning_rate, {.above = 0});
  local.outer_momentum = outer.number_or("momentum", local.outer_momentum, {.minimum = 0, .below = 1});
  return local;
}

ElasticOptions read_elastic(const Section& distributed) {
  ElasticOptions elastic;
  elastic.every = distributed.integer_or("every", elastic.every, {.minimum = 1});
  elastic.elasticity = distributed.number_or("elasticity", elastic.elasticity, {.maximum = 1, .above = 0});
  return elastic;
}

bool rank_0_adds(const std::string& strategy) {
  return strategy == "reduce-broadcast" || strategy == "send-recv" || strategy == "scatter-gather";
}

bool has_parameter_server(const std::string& strategy) {
  return strategy == "async-server" || strategy == "downpour";
}

AsyncServerOptions read_async_server(const Section& distributed, bool mixes) {
  AsyncServerOptions server;
  server.push_every = distributed.has("push_every")
                          ? distributed.integer_or_word("push_every", "epoch", {.minimum = 1})
                          : distributed.integer_or("push_every", *server.push_every);
  if (distributed.has("max_staleness"))
    server.max_staleness = distributed.integer("max_staleness", {.minimum = 0});
  if (!mixes) return server;
  server.rule.mix = distributed.number_or("mix", server.rule.mix, {.maximum = 1, .above = 0});
  server.rule.damping = distributed.number_or("damping", server.rule.damping, {.minimum = 0});
  return server;
}

// Each strategy with the keys that have an effect there.
void read_strategy(const Section& distributed, RunOptions& run) {
  run.strategy.name = read_strategy_name(distributed);
  const std::string because = "the strategy is " + run.strategy.name;
  const bool is_local = run.strategy.name == "local";
  const bool is_elastic = run.strategy.name == "elastic";
  const bool mixes = run.strategy.name == "async-server";
  const bool has_server = has_parameter_server(run.strategy.name);
  if (is_local) run.strategy.local = read_local(distributed, run.trainer.epochs);
  if (is_elastic) run.strategy.elastic = read_elastic(distributed);
  if (!is_local) distributed.refuse({"first_epochs", "outer"}, because);
  if (has_server) run.strategy.async_server = read_async_server(distributed, mixes);
  if (!is_elastic) distributed.refuse({"elasticity"}, because);
  if (!has_server) distributed.refuse({"push_every", "max_staleness"}, because);
  if (!mixes) distributed.refuse({"mix", "damping"}, because);
  if (!is_local && !is_elastic) distributed.refuse({"every"}, because);
  if (is_local || is_elastic || has_server)
    return distributed.refuse({"bucket_bytes", "rebroadcast_every", "verify_every", "on_loss"}, because);
  run.trainer.bucket_bytes = distributed.integer_or("bucket_bytes", 25 << 20, {.minimum = 1});
  if (run.strategy.name == "scatter-gather")
    return distributed.refuse({"rebroadcast_every", "verify_every", "on_loss"}, because);
  if (run.strategy.name == "send-recv") distributed.refuse({"on_loss"}, because + ", which needs its server");
  run.on_loss = read_on_loss(distributed);
  run.rebroadcast_every = distributed.integer_or("rebroadcast_every", 100, {.minimum = 1});
  run.trainer.verify_every = distributed.integer_or("verify_every", run.trainer.verify_every, {.minimum = 0});
}

// Empty where the parts of lost ranks can be summed as those ranks would have done.
std::string why_not_exact(const std::string& strategy, const std::string& algorithm) {
  if (strategy != "allreduce") return fmt::format("the strategy is {}; choose allreduce, or drop", strategy);
  if (algorithm == "ring" || algorithm == "tree" || algorithm == "mpi")
    return fmt::format("the algorithm is {}; choose auto, window or hierarchical, or drop", algorithm);
  return {};
}

void check_exact(const Section& distributed, const RunOptions& run) {
  const std::string why_not = why_not_exact(run.strategy.name, run.algorithm);
  if (run.on_loss == OnLoss::exact && !why_not.empty())
    throw distributed.error("on_loss", "is 'exact' and " + why_not);
}

}  // namespace

double read_deadline(const Section& distributed) {
  return distributed.number_or("deadline_seconds", 60, {.maximum = longest_deadline, .above = 0});
}

OnLoss read_on_loss(const Section& distributed) {
  const bool can_be_exact =
      why_not_exact(distributed.text_or("strategy", "allreduce"), distributed.text_or("algorithm", "auto"))
          .empty();
  const std::string word =
      distributed.choice_or("on_loss", can_be_exact ? "exact" : "end", {"drop", "end", "exact"});
  if (word == "exact") return OnLoss::exact;
  return word == "drop" ? OnLoss::drop : OnLoss::end;
}

bool read_shared_memory(const Section& distributed) { return distributed.flag_or("shared_memory", true); }

std::string read_strategy_name(const Section& distributed) {
  return distributed.choice_or("strategy", StrategyOptions().name, strategy_names());
}

std::filesystem::path read_output_folder(const Section& output) {
  std::filesystem::path folder = output.text_or("dir", "");
  std::error_code error;
  if (!folder.empty() && std::filesystem::exists(folder / "state.safetensors", error))
    throw output.error("dir",
                       fmt::format("'{}' is a checkpoint; name the folder that it lies in", folder.string()));
  return folder;
}

RunOptions read_options(const Config& config, std::int64_t samples, int ranks) {
  const Section training = config.section("training");
  const Section data = config.section("data");
  const Section distributed = config.section("distributed");
  const Section output = config.section("output");
  RunOptions run;
  run.dtype = training.choice_or("precision", "float32", {"float32", "float64"}) == "float64"
                  ? DType::float64
                  : DType::float32;
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
  trainer.optimizer = read_optimizer(training, run.dtype, peak);
  const std::int64_t steps_per_epoch = (samples + trainer.batch_size - 1) / trainer.batch_size;
  trainer.learning_rate = read_schedule(training, peak, steps_per_epoch, trainer.epochs);
  trainer.shuffle = data.flag_or("shuffle", true);
  trainer.workers = data.integer_or("workers", 1, {.minimum = 0, .maximum = 256});
  trainer.prefetch = data.integer_or("prefetch", 2, {.minimum = 1, .maximum = 1024});
  trainer.on_error =
      data.choice_or("on_error", "fail", {"fail", "skip"}) == "skip" ? OnError::skip : OnError::fail;
  read_strategy(distributed, run);
  if (rank_0_adds(run.strategy.name))
    distributed.refuse({"algorithm"}, "the strategy is " + run.strategy.name + ", and rank 0 adds");
  if (has_parameter_server(run.strategy.name))
    distributed.refuse({"algorithm"}, "the strategy is " + run.strategy.name + ", which makes no sums");
  run.algorithm = distributed.choice_or("algorithm", "auto", sum_algorithm_names());
  check_exact(distributed, run);
  read_deadline(distributed);
  read_shared_memory(distributed);
  trainer.output = read_output_folder(output);
  trainer.keep = static_cast<int>(
      output.integer_or("keep", 1, {.minimum = 1, .maximum = std::numeric_limits<int>::max()}));
  return run;
}

}  // namespace plexaura
