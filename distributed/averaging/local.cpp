#include "distributed/averaging/local.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "distributed/exchange/arena_state.h"
#include "distributed/node/reduce.h"

namespace plexaura {

namespace {

constexpr std::string_view anchor_prefix = "anchor.";
constexpr std::string_view velocity_prefix = "velocity.";

}  // namespace

void Local::begin(WeightsImmigration& border) {
  border_ = &border;
  change_.begin(border);
  const std::int64_t trainables = border.placement().count(ParameterRole::trainable);
  velocity_ = Tensor({change_.dtype(), Shape{has_velocity() ? trainables : 0}});
}

bool Local::is_first_epoch() const { return border_->place().epoch < options_.first_epochs; }

void Local::after_update() {
  change_.count_step();
  with_elements(change_.dtype(), [&]<class T>(T) { average<T>(); });
}

void Local::complete_exchange() {
  with_elements(change_.dtype(), [&]<class T>(T) {
    if (const auto missed = change_.catch_up<T>()) take(*missed);
    average<T>();
  });
}

// Takes all means that are due into the weights.
template <class T>
void Local::average() {
  while (const auto mean = change_.next<T>(every())) take(*mean);
}

template <class T>
void Local::take(const Mean<T>& mean) {
  const std::span<T> anchor = change_.anchor().as<T>().subspan(mean.first, mean.changes.size());
  const std::span<T> values = change_.values<T>().subspan(mean.first, mean.changes.size());
  if (!is_first_epoch()) take_outer_step(mean);
  for (std::size_t i = 0; i < anchor.size(); ++i) anchor[i] += mean.changes[i];
  if (mean.own.empty()) {
    std::ranges::copy(anchor, values.begin());
  } else {
    // The rank has made steps since the exchange began. Its buffers stay its own until a mean without such
    // steps: the sum of a mean and a later change could make a running variance negative.
    const std::size_t trainables = std::max(change_.trainables(), mean.first) - mean.first;
    for (std::size_t i = 0; i < std::min(trainables, values.size()); ++i)
      values[i] += mean.changes[i] - mean.own[i];
  }
  border_->store_values();
}

// Replaces the mean change by the step of the outer optimizer.
template <class T>
void Local::take_outer_step(const Mean<T>& mean) {
  if (mean.first >= change_.trainables()) return;
  const std::span<T> changes =
      mean.changes.first(std::min(mean.changes.size(), change_.trainables() - mean.first));
  if (has_velocity()) {
    const T momentum = static_cast<T>(options_.outer_momentum);
    const std::span<T> velocity = velocity_.as<T>().subspan(mean.first, changes.size());
    for (std::size_t i = 0; i < changes.size(); ++i) {
      velocity[i] = momentum * velocity[i] + changes[i];
      changes[i] += momentum * velocity[i];
    }
  }
  if (options_.outer_learning_rate == 1) return;
  for (T& change : changes) change *= static_cast<T>(options_.outer_learning_rate);
}

std::vector<StrategyState> Local::state() const {
  std::vector<StrategyState> state;
  keep_arena(border_->placement(), velocity_, velocity_prefix, false, state);
  change_.keep_counts(state);
  if (change_.has_moved())
    keep_arena(border_->placement(), change_.anchor(), anchor_prefix, false,
               state);  // if no step was made, the anchor equals the weights
  return state;
}

void Local::take_state(std::vector<StrategyState> state) {
  for (const StrategyState& part : state) {
    take_arena(border_->placement(), velocity_, velocity_prefix, part);
    take_arena(border_->placement(), change_.anchor(), anchor_prefix, part);
    change_.take_counts(part);
  }
}

}  // namespace plexaura
