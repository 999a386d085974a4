#include "distributed/averaging/elastic.h"

#include <span>
#include <string_view>
#include <utility>

#include "distributed/exchange/arena_state.h"
#include "distributed/node/reduce.h"

namespace plexaura {

namespace {

constexpr std::string_view own_prefix = "own.";
constexpr std::string_view centre_prefix = "centre.";

}  // namespace

void Elastic::begin(WeightsImmigration& border) {
  border_ = &border;
  centre_.begin(border);
  own_.reset();
}

void Elastic::after_update() {
  centre_.count_step();
  with_elements(centre_.dtype(), [&]<class T>(T) {
    if (const auto mean = centre_.next<T>(options_.every)) pull(*mean);
  });
}

// Completes an exchange after a loss of ranks. Divides the elasticity by the number of ranks that are left,
// even for a mean in which lost ranks took part.
void Elastic::complete_exchange() {
  with_elements(centre_.dtype(), [&]<class T>(T) {
    if (const auto missed = centre_.catch_up<T>()) pull(*missed);
    if (const auto mean = centre_.next<T>(options_.every)) pull(*mean);
  });
}

template <class T>
void Elastic::pull(const Mean<T>& mean) {
  const std::span<T> centre = centre_.anchor().as<T>();
  const std::span<T> values = centre_.values<T>();
  const T far = static_cast<T>(options_.elasticity);
  const T near = far / static_cast<T>(ranks_.size());
  for (std::size_t i = 0; i < centre_.trainables(); ++i) {
    values[i] -= near * (values[i] - centre[i]);
    centre[i] += far * mean.changes[i];
  }
  for (std::size_t i = centre_.trainables(); i < centre.size(); ++i) values[i] = centre[i] += mean.changes[i];
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

// Returns the counts, and the weights that are not in the store. While the centre is shown, as in a checkpoint, these
// are this rank's own weights; otherwise they are the centre.
std::vector<StrategyState> Elastic::state() const {
  std::vector<StrategyState> state;
  centre_.keep_counts(state);
  if (own_)
    keep_arena(border_->placement(), *own_, own_prefix, true, state);
  else
    keep_arena(border_->placement(), centre_.anchor(), centre_prefix, false, state);
  return state;
}

void Elastic::take_state(std::vector<StrategyState> state) {
  Tensor own = centre_.copy_values();
  for (const StrategyState& part : state) {
    centre_.take_counts(part);
    take_arena(border_->placement(), own, own_prefix, part);
    take_arena(border_->placement(), centre_.anchor(), centre_prefix, part);
  }
  centre_.write_values(own);
  border_->store_values();
}

}  // namespace plexaura
