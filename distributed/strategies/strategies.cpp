#include "distributed/strategies/strategies.h"

#include <algorithm>
#include <array>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "distributed/summing/all_reduce.h"
#include "distributed/summing/compressed_all_reduce.h"
#include "distributed/summing/overlapped.h"
#include "distributed/summing/reduce_broadcast.h"
#include "distributed/summing/scatter_gather.h"
#include "distributed/summing/send_receive.h"

namespace plexaura {
namespace {

std::unique_ptr<Strategy> overlap_if_asked(const StrategyOptions& options, Communicator& communicator,
                                           std::unique_ptr<BucketSum> strategy) {
  if (!overlaps(options, communicator)) return strategy;
  const bool forward = options.overlap == Overlap::both;
  return std::make_unique<Overlapped>(std::move(strategy), communicator,
                                      forward ? Overlapped::With::both : Overlapped::With::backward);
}

std::unique_ptr<Strategy> make_all_reduce(const StrategyOptions& options, Communicator& communicator) {
  auto compression = make_compression(options.compression, communicator);
  std::unique_ptr<BucketSum> made;
  if (compression == nullptr)
    made = std::make_unique<AllReduce>(communicator, options.update);
  else
    made = std::make_unique<CompressedAllReduce>(communicator, options.update, std::move(compression));
  return overlap_if_asked(options, communicator, std::move(made));
}

std::unique_ptr<Strategy> make_reduce_broadcast(const StrategyOptions& options, Communicator& communicator) {
  return overlap_if_asked(options, communicator,
                          std::make_unique<ReduceBroadcast>(communicator, options.update));
}

std::unique_ptr<Strategy> make_send_receive(const StrategyOptions&, Communicator& communicator) {
  return std::make_unique<SendReceive>(communicator);
}

std::unique_ptr<Strategy> make_scatter_gather(const StrategyOptions&, Communicator& communicator) {
  return std::make_unique<ScatterGather>(communicator);
}

bool may_lose_ranks(const StrategyOptions& options) { return options.update == BucketSum::Update::by_step; }

std::unique_ptr<Strategy> make_local(const StrategyOptions& options, Communicator& communicator) {
  return std::make_unique<Local>(communicator, options.local, may_lose_ranks(options),
                                 make_compression(options.compression, communicator));
}

std::unique_ptr<Strategy> make_elastic(const StrategyOptions& options, Communicator& communicator) {
  return std::make_unique<Elastic>(communicator, options.elastic, may_lose_ranks(options),
                                   make_compression(options.compression, communicator));
}

std::unique_ptr<Strategy> make_async_server(const StrategyOptions& options, Communicator& communicator) {
  AsyncServerOptions made = options.async_server;
  made.rule.push = options.name == "downpour" ? ServerRule::Push::changes : ServerRule::Push::weights;
  return std::make_unique<AsyncServer>(communicator, made);
}

struct KnownStrategy {
  std::string_view name;
  std::unique_ptr<Strategy> (*make)(const StrategyOptions&, Communicator&);
};

constexpr std::array known_strategies{KnownStrategy{"allreduce", make_all_reduce},
                                      KnownStrategy{"reduce-broadcast", make_reduce_broadcast},
                                      KnownStrategy{"send-recv", make_send_receive},
                                      KnownStrategy{"scatter-gather", make_scatter_gather},
                                      KnownStrategy{"local", make_local},
                                      KnownStrategy{"elastic", make_elastic},
                                      KnownStrategy{"async-server", make_async_server},
                                      KnownStrategy{"downpour", make_async_server}};

const KnownStrategy* known_strategy(std::string_view name) {
  const auto known = std::ranges::find(known_strategies, name, &KnownStrategy::name);
  return known == known_strategies.end() ? nullptr : &*known;
}

// Returns the error about wrong options, or null if there is none.
std::exception_ptr mistake_in(const StrategyOptions& options) {
  if (known_strategy(options.name) == nullptr)
    return std::make_exception_ptr(UserError(fmt::format("there is no strategy '{}'; known are {}{}",
                                                         options.name, fmt::join(strategy_names(), ", "),
                                                         did_you_mean(options.name, strategy_names()))));
  try {
    check_compression(options.compression.name);
  } catch (const UserError&) {
    return std::current_exception();
  }
  const std::vector<std::string> fit = compressions_of(options.name);
  if (std::ranges::find(fit, options.compression.name) == fit.end())
    return std::make_exception_ptr(UserError(
        fmt::format("the strategy '{}' does not compress with '{}'; it can take {}, and allreduce any",
                    options.name, options.compression.name, fmt::join(fit, ", "))));
  if (is_asked_for(options.overlap) && !can_overlap(options.name))
    return std::make_exception_ptr(UserError(fmt::format(
        "the strategy '{}' does not overlap; choose allreduce or reduce-broadcast, or overlap off",
        options.name)));
  if (options.name == "local" && options.local.fragments > options.local.every)
    return std::make_exception_ptr(UserError(
        fmt::format("local averages its fragments in turn within `every` steps, and {} fragments do not fit "
                    "into {} steps; set fragments to at most `every`",
                    options.local.fragments, options.local.every)));
  if (options.name == "local" && options.local.delay > 0 && may_lose_ranks(options))
    return std::make_exception_ptr(UserError(
        "if the run continues without lost ranks, local cannot delay its exchanges; set delay to 0"));
  if (has_parameter_server(options.name) && options.async_server.servers > 1 && may_lose_ranks(options))
    return std::make_exception_ptr(UserError(
        "if the run continues without lost ranks, it has only one parameter server; set servers to 1"));
  if (has_parameter_server(options.name) && options.async_server.group > 1 && may_lose_ranks(options))
    return std::make_exception_ptr(UserError(
        "if the run continues without lost ranks, each client of a server is one rank; set group to 1"));
  return nullptr;
}

}  // namespace

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    made.reserve(known_strategies.size());
    for (const KnownStrategy& known : known_strategies) made.emplace_back(known.name);
    return made;
  }();
  return names;
}

// Returns the compressions for a strategy. powersgd is left out for strategies in which each rank keeps its own
// weights: its state between exchanges would differ between ranks after a rank is lost during an exchange.
std::vector<std::string> compressions_of(std::string_view strategy) {
  if (strategy == "allreduce") return compression_names();
  if (keeps_own_weights(strategy)) return {"none", "fp16", "bf16", "top-k"};
  return {"none"};
}

bool can_overlap(std::string_view strategy) {
  return strategy == "allreduce" || strategy == "reduce-broadcast";
}

bool overlaps(const StrategyOptions& options, const Communicator& communicator) {
  const bool by_itself = options.overlap == Overlap::automatic && communicator.place().count > 1;
  return is_asked_for(options.overlap) || by_itself;
}

bool keeps_own_weights(std::string_view strategy) { return strategy == "local" || strategy == "elastic"; }

bool has_parameter_server(std::string_view strategy) {
  return strategy == "async-server" || strategy == "downpour";
}

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, Communicator& communicator) {
  agree_on_error(communicator, mistake_in(options), "the choice of a strategy");
  if (communicator.size() == 1 && !options.even_alone) return nullptr;
  return known_strategy(options.name)->make(options, communicator);
}

}  // namespace plexaura
