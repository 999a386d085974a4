#include "distributed/strategies/rebroadcast.h"

#include <fmt/format.h>

namespace plexaura {

HookSet Rebroadcast::hooks() const {
  HookSet hooks = inner_.hooks();
  hooks.after_update = true;
  return hooks;
}

void Rebroadcast::begin(WeightsImmigration& border) {
  border_ = &border;
  inner_.begin(border);
}

void Rebroadcast::after_update() {
  if (inner_.hooks().after_update) inner_.after_update();
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

}  // namespace plexaura
