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
  brought_.assign(border.buckets().size(), false);
  inner_.begin(border);
}

void Rebroadcast::before_use(std::size_t bucket) {
  if (!brought_[bucket]) inner_.before_use(bucket);
  brought_[bucket] = false;
}

void Rebroadcast::after_update() {
  const HookSet inner = inner_.hooks();
  if (inner.after_update) inner_.after_update();
  if (border_->step() % every_ != 0) return;
  for (std::size_t bucket = 0; inner.before_use && bucket < brought_.size(); ++bucket) {
    inner_.before_use(bucket);
    brought_[bucket] = true;
  }
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
