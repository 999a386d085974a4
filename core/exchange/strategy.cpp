#include "core/exchange/strategy.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

GradientSum::~GradientSum() = default;
WeightExchange::~WeightExchange() = default;
KeptState::~KeptState() = default;
Server::~Server() = default;
Strategy::~Strategy() = default;

std::unique_ptr<Memory> GradientSum::gradient_memory(std::size_t) { return nullptr; }

void check_strategy_parts(const StrategyParts& parts) {
  const auto require = [](bool declared, const char* what, const void* part, const char* name) {
    if (declared && part == nullptr)
      throw UserError(fmt::format(
          "the strategy declares StrategyParts::{} and has no StrategyParts::{}; give it that part, or leave "
          "the declaration out",
          what, name));
  };
  require(parts.agrees, "agrees", parts.gradients, "gradients");
  require(parts.updates_late, "updates_late", parts.gradients, "gradients");
  require(parts.on_device, "on_device", parts.gradients, "gradients");
  require(parts.shows_weights, "shows_weights", parts.weights, "weights");
  if (parts.dealer != nullptr && parts.scope != GradientScope::local)
    throw UserError(
        "the strategy has a dealer, with which no step is summed, and gradients of global scope; set "
        "StrategyParts::scope to GradientScope::local");
  const bool exchanges = parts.weights != nullptr || parts.dealer != nullptr || parts.server != nullptr;
  if (parts.scope == GradientScope::local && !exchanges)
    throw UserError(
        "the strategy has gradients of local scope and no StrategyParts::weights, so that each rank would "
        "train "
        "weights of its own and those of rank 0 would be saved; give it that part, or a dealer, or global "
        "scope");
}

Strategy& strategy_or_none(Strategy* strategy) {
  class NoParts final : public Strategy {
    StrategyParts parts() override { return {}; }
  };
  static NoParts none;
  return strategy != nullptr ? *strategy : none;
}

StrategyInUse::StrategyInUse(Strategy* given) : strategy(given), parts(strategy_or_none(given).parts()) {}

void StrategyDecorator::continue_from(const Strategy& former) {
  const auto* const decorated = dynamic_cast<const StrategyDecorator*>(&former);
  inner_.continue_from(decorated != nullptr ? decorated->inner_ : former);
}

}  // namespace plexaura
