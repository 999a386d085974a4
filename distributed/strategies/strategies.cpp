#include "distributed/strategies/strategies.h"

#include <algorithm>
#include <array>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/did_you_mean.h"
#include "core/error.h"
#include "distributed/strategies/all_reduce.h"
#include "distributed/strategies/reduce_broadcast.h"
#include "distributed/strategies/scatter_gather.h"
#include "distributed/strategies/send_receive.h"

namespace plexaura {
namespace {

template <class S>
std::unique_ptr<Strategy> make(const StrategyOptions& options, Communicator& communicator) {
  return std::make_unique<S>(communicator, options.update);
}

std::unique_ptr<Strategy> make_send_receive(const StrategyOptions&, Communicator& communicator) {
  return std::make_unique<SendReceive>(communicator);
}

std::unique_ptr<Strategy> make_scatter_gather(const StrategyOptions&, Communicator& communicator) {
  return std::make_unique<ScatterGather>(communicator);
}

std::unique_ptr<Strategy> make_local(const StrategyOptions& options, Communicator& communicator) {
  return std::make_unique<Local>(communicator, options.local);
}

std::unique_ptr<Strategy> make_elastic(const StrategyOptions& options, Communicator& communicator) {
  return std::make_unique<Elastic>(communicator, options.elastic);
}

std::unique_ptr<Strategy> make_async_server(const StrategyOptions& options, Communicator& communicator) {
  AsyncServerOptions made = options.async_server;
  made.rule.push = options.name == "downpour" ? ServerRule::Push::changes : ServerRule::Push::weights;
  return std::make_unique<AsyncServer>(communicator, made);
}

struct Known {
  std::string_view name;
  std::unique_ptr<Strategy> (*make)(const StrategyOptions&, Communicator&);
};

constexpr std::array known_strategies{Known{"allreduce", make<AllReduce>},
                                      Known{"reduce-broadcast", make<ReduceBroadcast>},
                                      Known{"send-recv", make_send_receive},
                                      Known{"scatter-gather", make_scatter_gather},
                                      Known{"local", make_local},
                                      Known{"elastic", make_elastic},
                                      Known{"async-server", make_async_server},
                                      Known{"downpour", make_async_server}};

std::exception_ptr unknown(std::string_view name) {
  return std::make_exception_ptr(
      UserError(fmt::format("there is no strategy '{}'; known are {}{}", name,
                            fmt::join(strategy_names(), ", "), did_you_mean(name, strategy_names()))));
}

}  // namespace

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    made.reserve(known_strategies.size());
    for (const Known& known : known_strategies) made.emplace_back(known.name);
    return made;
  }();
  return names;
}

std::unique_ptr<Strategy> make_strategy(const StrategyOptions& options, Communicator& communicator) {
  const auto known = std::ranges::find(known_strategies, options.name, &Known::name);
  const bool found = known != known_strategies.end();
  agree_on_error(communicator, found ? nullptr : unknown(options.name), "the choice of a strategy");
  return communicator.size() == 1 && !options.even_alone ? nullptr : known->make(options, communicator);
}

}  // namespace plexaura
