#include "app/options/distributed_config.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/data/sent_data.h"
#include "app/options/run_keys.h"
#include "distributed/choices/choose_compression.h"
#include "distributed/strategies/strategies.h"
#include "distributed/sums/sum_algorithms.h"

namespace plexaura {

namespace {

// True if all ranks update by the same sums.
bool all_update_alike(const std::string& strategy) {
  return !keeps_own_weights(strategy) && !has_parameter_server(strategy) && !sends_data(strategy);
}

void check_averages(const Section& distributed, const RunOptions& run) {
  if (run.trainer.optimizer.ema && !all_update_alike(run.strategy.name))
    throw distributed.error(
        "strategy",
        fmt::format(
            "is '{}', and training.ema averages the weights over updates, which all ranks have to make "
            "alike; remove training.ema, or choose the strategy allreduce",
            run.strategy.name));
}

// Throws for a strategy or a compression that does not support the precision.
void check_precision(const Section& distributed, const RunOptions& run) {
  const std::string& strategy = run.strategy.name;
  if (run.types.scales_loss() && !all_update_alike(strategy))
    throw distributed.error(
        "strategy",
        fmt::format("is '{}', and training.precision is float16, for whose loss scale all ranks have to "
                    "update by the same sums; choose bfloat16, or the strategy allreduce",
                    strategy));
  const std::string& compression = run.strategy.compression.name;
  const DType dtype = keeps_own_weights(strategy) ? run.types.values : run.types.gradients;
  if (compression != "none" && dtype != DType::float32)
    throw distributed.error("compression",
                            fmt::format("is '{}', which compresses float32, and training.precision is {}; "
                                        "remove one of them",
                                        compression, name_of(run.types.precision())));
  if (compression != "none" && run.types.scales_loss())
    throw distributed.error(
        "compression",
        fmt::format("is '{}', and gradients of training.precision float16 may be infinite, which "
                    "compression spreads; choose bfloat16, or remove the compression",
                    compression));
}

void check_local(const Section& distributed, const LocalOptions& local, std::int64_t epochs) {
  if (local.every % local.fragments != 0)
    throw distributed.error("fragments",
                            fmt::format("is {}, and every is {}; give a divisor of that, so that exchanges "
                                        "follow each other after as many steps",
                                        local.fragments, local.every));
  if (local.first_epochs >= epochs)
    throw distributed.error(
        "first_epochs",
        fmt::format("is {}, and training.epochs is {}; give a smaller number", local.first_epochs, epochs));
}

// Returns the reason why the parts of lost ranks cannot be summed with the same bits as before. Returns an
// empty text if they can.
std::string why_not_exact(const RunOptions& run) {
  if (run.strategy.name != "allreduce")
    return fmt::format("distributed.strategy is {}; choose allreduce", run.strategy.name);
  const std::vector<std::string> fit = sum_algorithms_of_shards();
  if (std::ranges::find(fit, run.algorithm) == fit.end())
    return fmt::format("distributed.algorithm is {}; choose one of {}", run.algorithm, fmt::join(fit, ", "));
  if (run.strategy.compression.name != "none")
    return fmt::format(
        "distributed.compression is {}, and what a lost rank owed is lost with it; choose none",
        run.strategy.compression.name);
  return {};
}

// Throws if the compression is `auto` and the algorithm sends a number of bytes that the cost model does not
// know.
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

// Switches off overlap with the algorithm mpi, because a thread that waits in MPI cannot be interrupted.
// Throws if the file demands overlap or a delay.
void resolve_overlap(const Section& distributed, RunOptions& run) {
  if (run.algorithm != "mpi") return;
  if (run.strategy.local.delay > 0)
    throw distributed.error("delay", "is above 0, and distributed.algorithm is mpi; remove one of them");
  if (is_asked_for(run.strategy.overlap))
    throw distributed.error("overlap",
                            fmt::format("is {}, and distributed.algorithm is mpi; remove one of them",
                                        run.strategy.overlap == Overlap::both ? "both" : "on"));
  run.strategy.overlap = Overlap::off;
}

// Checks the options of sums on devices. Devices sum only uncompressed gradients of `allreduce`, always
// overlap with computation, and need on_loss `end`.
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
    throw distributed.error("algorithm",
                            is + "devices sum while they compute, whatever overlap says; remove one of them");
}

// Throws if the death of a rank would lose data that no other rank has.
void check_drop(const Section& distributed, const RunOptions& run) {
  if (run.on_loss != OnLoss::drop) return;
  if (run.strategy.local.delay > 0)
    throw distributed.error("on_loss",
                            "is 'drop', and the exchange under way would be lost with a rank, since "
                            "distributed.delay is above 0; remove one of them");
  if (run.strategy.async_server.group > 1)
    throw distributed.error("on_loss",
                            "is 'drop', and a client would lose one of its ranks, since distributed.group is "
                            "above 1; remove one of them");
  if (run.strategy.async_server.servers > 1)
    throw distributed.error("on_loss",
                            "is 'drop', and the weights of a server would be lost with it, since "
                            "distributed.servers is above 1; remove one of them");
}

}  // namespace

std::string push_limit_sentence(const AsyncServerOptions& options) {
  return fmt::format(
      "a push that changes the weights more than {:g} times as far as other pushes, and by more than {:g} "
      "times their norm, is not taken in (distributed.push_limit)",
      options.push_limit, options.push_limit);
}

OnLoss default_on_loss(const RunOptions& run) {
  const StrategyOptions& strategy = run.strategy;
  if (why_not_exact(run).empty()) return OnLoss::exact;
  const bool is_alone = strategy.async_server.servers == 1 && strategy.async_server.group == 1;
  const bool drops = has_parameter_server(strategy.name)
                         ? is_alone
                         : keeps_own_weights(strategy.name) && strategy.local.delay == 0;
  return drops ? OnLoss::drop : OnLoss::end;
}

std::string why_others_end(const Config& config, const RunOptions& run) {
  // Reads the section again, because the choices between ranks may have replaced some options.
  const Section distributed = config.section("distributed");
  const std::string why_not = why_not_exact(read_distributed_alone(config));
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
  return "when a rank dies, all others end, although this MPI would let them continue, because " + reason;
}

RunOptions read_distributed_alone(const Config& config) {
  const Section distributed = config.section("distributed");
  RunOptions run;
  read_keys(distributed, distributed_keys(run));
  check_drop(distributed, run);
  return run;
}

void read_distributed(const Section& distributed, RunOptions& run) {
  read_keys(distributed, distributed_keys(run));
  run.strategy.elastic.every = run.strategy.local.every;  // the strategies local and elastic share the key
  run.finds_buckets = !run.bucket_bytes && run.strategy.name == "allreduce";
  run.trainer.bucket_bytes = run.bucket_bytes.value_or(run.trainer.bucket_bytes);
  check_local(distributed, run.strategy.local, run.trainer.epochs);
  check_precision(distributed, run);
  check_averages(distributed, run);
  check_drop(distributed, run);
  check_device(distributed, run);
  check_automatic(distributed, run);
  check_exact(distributed, run);
  resolve_overlap(distributed, run);
}

}  // namespace plexaura
