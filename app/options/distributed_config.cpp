#include "app/options/distributed_config.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <optional>

#include "app/data/sent_data.h"
#include "distributed/choices/choose_compression.h"
#include "distributed/strategies/strategies.h"
#include "distributed/sums/sum_algorithms.h"

namespace plexaura {

namespace {

constexpr double shortest_deadline = 0.1;       // seconds: a message between hosts takes a part of it
constexpr double longest_deadline = 1'000'000;  // seconds: eleven days, and few enough for any clock

LocalOptions read_local(const Section& distributed, std::int64_t epochs) {
  LocalOptions local;
  local.every = distributed.integer_or("every", local.every, {.minimum = 1});
  local.first_epochs =
      distributed.integer_or("first_epochs", local.first_epochs, {.minimum = 0, .maximum = epochs - 1});
  const Section outer = distributed.section("outer");
  local.outer_learning_rate = outer.number_or("learning_rate", local.outer_learning_rate, {.above = 0});
  local.outer_momentum = outer.number_or("momentum", local.outer_momentum, {.minimum = 0, .below = 1});
  local.fragments =
      distributed.integer_or("fragments", local.fragments, {.minimum = 1, .maximum = local.every});
  if (local.every % local.fragments != 0)
    throw distributed.error("fragments",
                            fmt::format("is {}, and every is {}; give a divisor of that, so that exchanges "
                                        "follow each other after as many steps",
                                        local.fragments, local.every));
  local.delay = distributed.integer_or("delay", local.delay,
                                       {.minimum = 0, .maximum = local.every / local.fragments - 1});
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
  const bool sums_weights = keeps_own_weights(run.strategy.name);
  std::vector<std::string> names = compressions_of(run.strategy.name);
  if (!sums_weights) names.emplace_back(automatic_compression);
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
  const DType dtype = sums_weights ? run.types.values : run.types.gradients;
  if (compression.name != "none" && dtype != DType::float32)
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
      {"auto", Overlap::automatic}, {"on", Overlap::on}, {"both", Overlap::both}, {"off", Overlap::off}};
  return choices.at(distributed.choice_or("overlap", "auto", {"auto", "on", "both", "off"}));
}

bool rank_0_adds(const std::string& strategy) {
  return strategy == "reduce-broadcast" || strategy == "send-recv" || strategy == "scatter-gather";
}

AsyncServerOptions read_async_server(const Section& distributed, double mix) {
  AsyncServerOptions server;
  server.servers = static_cast<int>(distributed.integer_or(
      "servers", server.servers, {.minimum = 1, .maximum = std::numeric_limits<int>::max()}));
  server.group = static_cast<int>(distributed.integer_or(
      "group", server.group, {.minimum = 1, .maximum = std::numeric_limits<int>::max()}));
  server.push_every = distributed.has("push_every")
                          ? distributed.integer_or_word("push_every", "epoch", {.minimum = 1})
                          : distributed.integer_or("push_every", *server.push_every);
  if (distributed.has("max_staleness"))
    server.max_staleness = distributed.integer("max_staleness", {.minimum = 0});
  const bool is_threaded = distributed.choice_or("client", "serial", {"serial", "threaded"}) == "threaded";
  server.client = is_threaded ? ClientKind::threaded : ClientKind::serial;
  server.rule.mix = distributed.number_or("mix", mix, {.maximum = 1, .above = 0});
  server.rule.damping = distributed.number_or("damping", server.rule.damping, {.minimum = 0});
  server.push_limit = distributed.number_or("push_limit", server.push_limit, {.above = 1});
  return server;
}

// Only `allreduce` looks for another size than that which the others take.
void read_bucket_bytes(const Section& distributed, RunOptions& run) {
  std::optional<std::int64_t> given;
  if (distributed.has("bucket_bytes"))
    given = distributed.integer_or_word("bucket_bytes", "auto", {.minimum = 1});
  else
    distributed.choice_or("bucket_bytes", "auto", {"auto"});  // notes the default
  run.trainer.bucket_bytes = given.value_or(25 << 20);
  run.finds_buckets = !given && run.strategy.name == "allreduce";
}

// Each strategy with the keys that have an effect there.
void read_strategy(const Section& distributed, RunOptions& run) {
  run.strategy.name = read_strategy_name(distributed);
  const std::string because = "the strategy is " + run.strategy.name;
  const bool is_local = run.strategy.name == "local";
  const bool is_elastic = run.strategy.name == "elastic";
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
  if (compressions_of(run.strategy.name).size() > 1)
    run.strategy.compression = read_compression(distributed, run);
  else
    distributed.refuse({"compression", "compression_ratio", "compression_rank"}, because);
  if (!is_local) distributed.refuse({"first_epochs", "outer", "fragments", "delay"}, because);
  if (has_server)
    run.strategy.async_server = read_async_server(distributed, run.strategy.name == "downpour" ? 1 : 0.5);
  if (!is_elastic) distributed.refuse({"elasticity"}, because);
  if (!has_server)
    distributed.refuse(
        {"servers", "group", "push_every", "max_staleness", "client", "mix", "damping", "push_limit"},
        because);
  if (is_local || is_elastic)
    run.trainer.report_seconds =
        distributed.number_or("report_seconds", run.trainer.report_seconds, {.minimum = 0});
  else
    distributed.refuse({"every", "report_seconds"}, because);
  if (is_local || is_elastic || has_server) {
    run.on_loss = read_on_loss(distributed);
    return distributed.refuse({"bucket_bytes", "rebroadcast_every", "verify_every"}, because);
  }
  read_bucket_bytes(distributed, run);
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
  if (run.strategy.local.delay > 0)
    throw distributed.error("delay", "is above 0, and distributed.algorithm is mpi; remove one of them");
  if (is_asked_for(run.strategy.overlap))
    throw distributed.error("overlap",
                            fmt::format("is {}, and distributed.algorithm is mpi; remove one of them",
                                        distributed.text_or("overlap", "auto")));
  run.strategy.overlap = Overlap::off;
}

std::string read_algorithm(const Section& distributed) {
  std::vector<std::string> names = sum_algorithm_names();
  names.emplace_back(device_algorithm);
  return distributed.choice_or("algorithm", "auto", names);
}

// Devices sum what `allreduce` sums, as it is, beside what they compute, and end with the first rank that does.
void check_device(const Section& distributed, const RunOptions& run) {
  if (run.algorithm != device_algorithm) return;
  const std::string is = fmt::format("is '{}', and ", device_algorithm);
  if (run.strategy.name != "allreduce")
    throw distributed.error(
        "algorithm", is + fmt::format("the strategy is {}; choose allreduce, or auto", run.strategy.name));
  if (run.strategy.compression.name != "none")
    throw distributed.error("algorithm", is + fmt::format("the compression is {}; remove one of them",
                                                          run.strategy.compression.name));
  if (run.on_loss != OnLoss::end)
    throw distributed.error("algorithm", is + "on_loss is not end; remove one of them");
  if (run.strategy.overlap != Overlap::automatic)
    throw distributed.error(
        "algorithm", is + "devices sum beside what they compute whatever overlap says; remove one of them");
}

// Whether steps go on while ranks exchange their weights.
bool exchanges_late(const Section& distributed) {
  return distributed.text_or("strategy", "allreduce") == "local" && distributed.integer_or("delay", 0) > 0;
}

// Whether the strategy has a parameter server, and this number of ranks is above 1.
bool has_several(const Section& distributed, const char* key) {
  return has_parameter_server(distributed.text_or("strategy", "allreduce")) &&
         distributed.integer_or(key, 1) > 1;
}

}  // namespace

double read_deadline(const Section& distributed) {
  return distributed.number_or("deadline_seconds", 60,
                               {.minimum = shortest_deadline, .maximum = longest_deadline});
}

std::string push_limit_sentence(const AsyncServerOptions& options) {
  return fmt::format(
      "a push that changes the weights more than {:g} times as far as other pushes, and by more than {:g} "
      "times "
      "their norm, is not taken in (distributed.push_limit)",
      options.push_limit, options.push_limit);
}

OnLoss read_on_loss(const Section& distributed) {
  const std::string strategy = distributed.text_or("strategy", "allreduce");
  const bool can_be_exact = why_not_exact(strategy, distributed.text_or("algorithm", "auto"),
                                          distributed.text_or("compression", "none"))
                                .empty();
  // Ranks that do not run in lock-step have no reference run whose bits they could reproduce.
  const bool is_late = exchanges_late(distributed);
  const bool has_shards = has_several(distributed, "servers");
  const bool has_groups = has_several(distributed, "group");
  const bool may_lose_clients = has_parameter_server(strategy) && !has_shards && !has_groups;
  const bool always_drops = (keeps_own_weights(strategy) && !is_late) || may_lose_clients;
  const std::string by_default = can_be_exact ? "exact" : always_drops ? "drop" : "end";
  const std::string word = distributed.choice_or("on_loss", by_default, {"drop", "end", "exact"});
  if (word == "exact") return OnLoss::exact;
  if (word == "drop" && is_late)
    throw distributed.error("on_loss",
                            "is 'drop', and the exchange under way would be lost with a rank, since "
                            "distributed.delay is above 0; remove one of them");
  if (word == "drop" && has_groups)
    throw distributed.error("on_loss",
                            "is 'drop', and a client would lose one of its ranks, since distributed.group is "
                            "above 1; remove one of them");
  if (word == "drop" && has_shards)
    throw distributed.error("on_loss",
                            "is 'drop', and the weights of a server would be lost with it, since "
                            "distributed.servers is above 1; remove one of them");
  return word == "drop" ? OnLoss::drop : OnLoss::end;
}

std::string why_others_end(const Config& config, const RunOptions& run) {
  // As the file has them: some may have been chosen since.
  const Section distributed = config.section("distributed");
  const std::string why_not = why_not_exact(run.strategy.name, distributed.text_or("algorithm", "auto"),
                                            distributed.text_or("compression", "none"));
  const bool can_drop = run.strategy.name == "allreduce" || run.strategy.name == "reduce-broadcast";
  const std::string reason =
      run.strategy.local.delay > 0
          ? "distributed.delay is above 0, and the exchange under way would be lost with a rank; set it to 0"
      : run.strategy.async_server.servers > 1
          ? "distributed.servers is above 1, and the weights of a server would be lost with it; set it to 1"
      : run.strategy.async_server.group > 1
          ? "distributed.group is above 1, and a client would lose one of its ranks; set it to 1"
      : distributed.has("on_loss")
          ? fmt::format("distributed.on_loss is end; set it to {}drop", why_not.empty() ? "exact or " : "")
          : why_not + (can_drop ? ", or set distributed.on_loss to drop" : "");
  return "when a rank dies, all others end, although this MPI would let them go on, because " + reason;
}

bool read_shared_memory(const Section& distributed) { return distributed.flag_or("shared_memory", true); }

std::string read_strategy_name(const Section& distributed) {
  return distributed.choice_or("strategy", StrategyOptions().name, strategy_names());
}

void read_distributed(const Section& distributed, RunOptions& run) {
  read_strategy(distributed, run);
  if (rank_0_adds(run.strategy.name))
    distributed.refuse({"algorithm"}, "the strategy is " + run.strategy.name + ", and rank 0 adds");
  if (has_parameter_server(run.strategy.name))
    distributed.refuse({"algorithm"},
                       "the strategy is " + run.strategy.name + ", whose servers make no sums");
  run.algorithm = read_algorithm(distributed);
  check_device(distributed, run);
  check_automatic(distributed, run);
  check_exact(distributed, run);
  settle_overlap(distributed, run);
  read_deadline(distributed);
  read_shared_memory(distributed);
}

}  // namespace plexaura
