#include "distributed/strategies/rebroadcast.h"

#include <fmt/format.h>

namespace plexaura {

Rebroadcast::Rebroadcast(Strategy& inner, Collective& ranks, std::int64_t every)
    : StrategyDecorator(inner),
      parts_(inner.parts()),
      weights_(parts_.weights != nullptr ? *parts_.weights : nothing_),
      ranks_(ranks),
      every_(every) {
  parts_.weights = this;
  parts_.realigns_weights = true;
}

void Rebroadcast::begin(WeightsImmigration& border) {
  border_ = &border;
  StrategyDecorator::begin(border);
}

void Rebroadcast::after_update() {
  weights_.after_update();
  if (border_->step() % every_ != 0) return;
  const std::span<std::byte> values = border_->fetch_values();
  ranks_.broadcast(values.data(), values.size(), 0,
                   fmt::format("the weights after step {}", border_->step()));
  if (ranks_.rank() != 0) border_->store_values();
  std::vector<std::byte> state = border_->emigrate_state();
  ranks_.broadcast(state.data(), state.size(), 0,
                   fmt::format("the optimizer's state after step {}", border_->step()));
  if (ranks_.rank() != 0) border_->immigrate_state(state, border_->placement());
}

Strategy* realign(Strategy* strategy, Collective& ranks, std::int64_t every,
                  std::optional<Rebroadcast>& made) {
  if (strategy == nullptr || strategy->parts().realigns_weights) return strategy;
  return &made.emplace(*strategy, ranks, every);
}

}  // namespace plexaura
