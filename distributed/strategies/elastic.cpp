#include "distributed/strategies/elastic.h"

#include <span>
#include <string_view>
#include <utility>

#include "distributed/strategies/arena_state.h"

namespace plexaura {

namespace {

constexpr std::string_view own_prefix = "own.";

}  // namespace

void Elastic::begin(WeightsImmigration& border) {
  border_ = &border;
  centre_.begin(border);
  own_.reset();
}

void Elastic::after_update() {
  if (!centre_.step(options_.every)) return;
  if (centre_.dtype() == DType::float64)
    pull<double>();
  else
    pull<float>();
}

template <class T>
void Elastic::pull() {
  const std::span<const T> mean = centre_.mean<T>();
  const std::span<T> centre = centre_.anchor().as<T>();
  const std::span<T> values = centre_.values<T>();
  const T far = static_cast<T>(options_.elasticity);
  const T near = far / static_cast<T>(ranks_.size());
  for (std::size_t i = 0; i < centre_.trainables(); ++i) {
    values[i] -= near * (values[i] - centre[i]);
    centre[i] += far * mean[i];
  }
  for (std::size_t i = centre_.trainables(); i < centre.size(); ++i) values[i] = centre[i] += mean[i];
  border_->store_values();
}

void Elastic::show_weights() {
  own_ = centre_.copy_values();
  centre_.write_values(centre_.anchor());
  border_->store_values();
}

void Elastic::take_weights_back() {
  centre_.write_values(*std::exchange(own_, std::nullopt));
  border_->store_values();
}

// A checkpoint has the centre as its weights.
std::vector<StrategyState> Elastic::state() const {
  std::vector<StrategyState> state;
  centre_.keep_counts(state);
  if (own_) keep_arena(border_->placement(), *own_, own_prefix, true, state);
  return state;
}

void Elastic::take_state(std::vector<StrategyState> state) {
  Tensor own = centre_.copy_values();
  for (const StrategyState& part : state) {
    centre_.take_counts(part);
    take_arena(border_->placement(), own, own_prefix, part);
  }
  centre_.write_values(own);
  border_->store_values();
}

}  // namespace plexaura
