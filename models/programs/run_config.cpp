#include "models/programs/run_config.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <system_error>

#include "distributed/compression/choose_compression.h"
#include "distributed/strategies/strategies.h"
#include "distributed/sums/sum_algorithms.h"
#include "models/programs/sent_data.h"

namespace plexaura {

namespace {

// No run needs more, and products of these with ranks or with samples still are 64-bit numbers.
constexpr std::int64_t largest_batch = std::int64_t{1} << 31;
constexpr std::int64_t most_epochs = 1'000'000'000;
constexpr double longest_deadline = 1'000'000;  // seconds: eleven days, and few enough for any clock

// How kernels take a number of the update that the precision has not: as "0", which they take denormal numbers for, or as
// "infinite". Empty for any other.
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
  const double rate = optimizer.number("learning_rate", {.above = 0});
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

CompressionOptions read_compression(const Section& distributed, const RunOptions& run) {
  CompressionOptions compression;
  std::vector<std::string> names = compression_names();
  names.emplace_back(automatic_compression);
  compression.name = distributed.choice_or("compression", compression.name, names);
  const bool is_automatic = compression.name == automatic_compression;
  if (compression.name == "top-k" || is_automatic)
    compression.ratio =
        distributed.number_or("compression_ratio", compression.ratio, {.maximum = 1, .above = 0});
  else
    distributed.refuse({"compression_ratio"}, "the compression is " + compression.name);
  if (compression.name == "powersgd" || is_automatic)
    compression.rank =
        distributed.integer_or("compression_rank", compression.rank, {.minimum = 1, .maximum = 1024});
  else
    distributed.refuse({"compression_rank"}, "the compression is " + compression.name);
  if (compression.name != "none" && run.types.gradients != DType::float32)
    throw distributed.error("compression",
                            fmt::format("is '{}', which compresses float32, and training.precision is {}; "
                                        "remove one of them",
                                        compression.name, name_of(run.types.precision())));
  if (compression.name != "none" && run.types.scales_loss())
    throw distributed.error(
        "compression",
        fmt::format("is '{}', and gradients of training.precision float16 may be infinite, which "
                    "compression spreads; choose bfloat16, or remove the compression",
                    compression.name));
  return compression;
}

Overlap read_overlap(const Section& distributed) {
  const std::map<std::string, Overlap> choices{
      {"auto", Overlap::automatic}, {"on", Overlap::on}, {"off", Overlap::off}};
  return choices.at(distributed.choice_or("overlap", "auto", {"auto", "on", "off"}));
}

bool rank_0_adds(const std::string& strategy) {
  return strategy == "reduce-broadcast" || strategy == "send-recv" || strategy == "scatter-gather";
}

AsyncServerOptions read_async_server(const Section& distributed, bool mixes) {
  AsyncServerOptions server;
  server.push_every = distributed.has("push_every")
                          ? distributed.integer_or_word("push_every", "epoch", {.minimum = 1})
                          : distributed.integer_or("push_every", *server.push_every);
  if (distributed.has("max_staleness"))
    server.max_staleness = distributed.integer("max_staleness", {.minimum = 0});
  const bool is_threaded = distributed.choice_or("client", "serial", {"serial", "threaded"}) == "threaded";
  server.client = is_threaded ? ClientKind::threaded : ClientKind::serial;
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
  const bool all_update_alike = !is_local && !is_elastic && !has_server && !sends_data(run.strategy.name);
  if (run.types.scales_loss() && !all_update_alike)
    throw distributed.error(
        "strategy",
        fmt::format("is '{}', and training.precision is float16, for whose loss scale all ranks have to "
                    "update by the same sums; choose bfloat16, or the strategy allreduce",
                    run.strategy.name));
  if (is_local) run.strategy.local = read_local(distributed, run.trainer.epochs);
  if (is_elastic) run.strategy.elastic = read_elastic(distributed);
  if (can_overlap(run.strategy.name))
    run.strategy.overlap = read_overlap(distributed);
  else
    distributed.refuse({"overlap"}, because);
  if (can_compress(run.strategy.name))
    run.strategy.compression = read_compression(distributed, run);
  else
    distributed.refuse({"compression", "compression_ratio", "compression_rank"}, because);
  if (!is_local) distributed.refuse({"first_epochs", "outer"}, because);
  if (has_server) run.strategy.async_server = read_async_server(distributed, mixes);
  if (!is_elastic) distributed.refuse({"elasticity"}, because);
  if (!has_server) distributed.refuse({"push_every", "max_staleness", "client"}, because);
  if (!mixes) distributed.refuse({"mix", "damping"}, because);
  if (!is_local && !is_elastic) distributed.refuse({"every"}, because);
  if (is_local || is_elastic || has_server) {
    run.on_loss = read_on_loss(distributed);
    return distributed.refuse({"bucket_bytes", "rebroadcast_every", "verify_every"}, because);
  }
  run.trainer.bucket_bytes = distributed.integer_or("bucket_bytes", 25 << 20, {.minimum = 1});
  if (sends_data(run.strategy.name))
    return distributed.refuse({"rebroadcast_every", "verify_every", "on_loss"}, because);
  if (run.strategy.name == "send-recv") distributed.refuse({"on_loss"}, because + ", which needs its server");
  run.on_loss = read_on_loss(distributed);
  run.rebroadcast_every = distributed.integer_or("rebroadcast_every", 100, {.minimum = 1});
  run.trainer.verify_every = distributed.integer_or("verify_every", run.trainer.verify_every, {.minimum = 0});
}

// Empty where the parts of lost ranks can be summed as those ranks would have done.
std::string why_not_exact(const std::string& strategy, const std::string& algorithm,
                          const std::string& compression) {
  if (strategy != "allreduce") return fmt::format("distributed.strategy is {}; choose allreduce", strategy);
  const std::vector<std::string> fit = sum_algorithms_of_shards();
  if (std::ranges::find(fit, algorithm) == fit.end())
    return fmt::format("distributed.algorithm is {}; choose one of {}", algorithm, fmt::join(fit, ", "));
  if (compression != "none")
    return fmt::format(
        "distributed.compression is {}, and what a lost rank owed is lost with it; choose none", compression);
  return {};
}

std::string why_not_exact(const RunOptions& run) {
  return why_not_exact(run.strategy.name, run.algorithm, run.strategy.compression.name);
}

// The bytes that other algorithms send are not known to the estimate.
void check_automatic(const Section& distributed, const RunOptions& run) {
  const std::vector<std::string> fit = sum_algorithms_of_shards();
  if (run.strategy.compression.name == automatic_compression &&
      std::ranges::find(fit, run.algorithm) == fit.end())
    throw distributed.error(
        "compression", fmt::format("is 'auto', which cannot estimate what the algorithm {} takes; remove "
                                   "distributed.algorithm, or name a compression",
                                   run.algorithm));
}

void check_exact(const Section& distributed, const RunOptions& run) {
  const std::string why_not = why_not_exact(run);
  if (run.on_loss == OnLoss::exact && !why_not.empty())
    throw distributed.error("on_loss", "is 'exact' and " + why_not + ", or drop");
}

// A thread that waits in MPI cannot be interrupted.
void settle_overlap(const Section& distributed, RunOptions& run) {
  if (run.algorithm != "mpi") return;
  if (run.strategy.overlap == Overlap::on)
    throw distributed.error("overlap", "is on, and distributed.algorithm is mpi; remove one of them");
  run.strategy.overlap = Overlap::off;
}

}  // namespace

double read_deadline(const Section& distributed) {
  return distributed.number_or("deadline_seconds", 60, {.maximum = longest_deadline, .above = 0});
}

OnLoss read_on_loss(const Section& distributed) {
  const std::string strategy = distributed.text_or("strategy", "allreduce");
  const bool can_be_exact = why_not_exact(strategy, distributed.text_or("algorithm", "auto"),
                                          distributed.text_or("compression", "none"))
                                .empty();
  // There is no undisturbed run that ranks which do not follow one another could repeat.
  const bool always_drops = keeps_own_weights(strategy) || has_parameter_server(strategy);
  const std::string by_default = can_be_exact ? "exact" : always_drops ? "drop" : "end";
  const std::string word = distributed.choice_or("on_loss", by_default, {"drop", "end", "exact"});
  if (word == "exact") return OnLoss::exact;
  return word == "drop" ? OnLoss::drop : OnLoss::end;
}

std::string why_others_end(const Config& config, const RunOptions& run) {
  const std::string why_not = why_not_exact(run);
  const bool can_drop = run.strategy.name == "allreduce" || run.strategy.name == "reduce-broadcast";
  const std::string reason =
      config.section("distributed").has("on_loss")
          ? fmt::format("distributed.on_loss is end; set it to {}drop", why_not.empty() ? "exact or " : "")
          : why_not + (can_drop ? ", or set distributed.on_loss to drop" : "");
  return "when a rank dies, all others end, although this MPI would let them go on, because " + reason;
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
  read_strategy(distributed, run);
  if (rank_0_adds(run.strategy.name))
    distributed.refuse({"algorithm"}, "the strategy is " + run.strategy.name + ", and rank 0 adds");
  if (has_parameter_server(run.strategy.name))
    distributed.refuse({"algorithm"}, "the strategy is " + run.strategy.name + ", which makes no sums");
  run.algorithm = distributed.choice_or("algorithm", "auto", sum_algorithm_names());
  check_automatic(distributed, run);
  check_exact(distributed, run);
  settle_overlap(distributed, run);
  read_deadline(distributed);
  read_shared_memory(distributed);
  trainer.output = read_output_folder(output);
  trainer.keep = static_cast<int>(
      output.integer_or("keep", 1, {.minimum = 1, .maximum = std::numeric_limits<int>::max()}));
  return run;
}

}  // namespace plexaura
