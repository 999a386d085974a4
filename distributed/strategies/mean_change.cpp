#include "distributed/strategies/mean_change.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "distributed/group/reduce.h"

namespace plexaura {

namespace {

constexpr std::string_view steps_name = "steps";
constexpr std::string_view samples_name = "samples";

}  // namespace

void MeanChange::begin(WeightsImmigration& border) {
  const Placement& placement = border.placement();
  const DType dtype = placement.dtype(ArenaKind::value);
  check_summable(dtype);
  border_ = &border;
  const std::int64_t elements =
      placement.count(ParameterRole::trainable) + placement.count(ParameterRole::buffer);
  anchor_ = Tensor({dtype, Shape{elements}});
  anchor_ = copy_values();
  changes_ = Tensor({dtype, Shape{elements + 1}});
  steps_ = samples_ = 0;
}

bool MeanChange::step(std::int64_t every) {
  samples_ += border_->place().samples;
  return ++steps_ >= every || border_->place().ends_epoch;
}

std::size_t MeanChange::trainables() const {
  return static_cast<std::size_t>(border_->placement().count(ParameterRole::trainable));
}

template <class T>
std::span<T> MeanChange::mean() {
  const std::span<const T> anchor = anchor_.as<T>();
  const std::span<const T> weights = values<T>();
  const std::span<T> changes = changes_.as<T>();
  const T own = static_cast<T>(samples_);
  for (std::size_t i = 0; i < anchor.size(); ++i) changes[i] = own * (weights[i] - anchor[i]);
  changes.back() = own;
  {
    const ExchangeMeter::Exchange exchange(meter_, weight_bytes(*border_));
    ranks_.sum(dtype(), changes_.data(), changes_.elements(),
               fmt::format("the weights after step {}", border_->step()));
  }
  const T all = std::max(changes.back(), T{1});  // none where each rank fails in its first step
  for (T& change : changes) change /= all;
  steps_ = samples_ = 0;
  return changes.first(anchor.size());
}

template std::span<float> MeanChange::mean();
template std::span<double> MeanChange::mean();

Tensor MeanChange::copy_values() const {
  Tensor copy(anchor_.type());
  std::memcpy(copy.data(), border_->fetch_values().data(), copy.bytes());
  return copy;
}

void MeanChange::write_values(const Tensor& copy) const {
  std::memcpy(border_->fetch_values().data(), copy.data(), copy.bytes());
}

void MeanChange::keep_counts(std::vector<StrategyState>& state) const {
  if (steps_ == 0) return;
  state.push_back({std::string(steps_name), Tensor::scalar(steps_)});
  state.push_back({std::string(samples_name), Tensor::scalar(samples_), true});
}

void MeanChange::take_counts(const StrategyState& part) {
  if (part.name == steps_name) steps_ = part.value.as<std::int64_t>()[0];
  if (part.name == samples_name) samples_ = part.value.as<std::int64_t>()[0];
}

}  // namespace plexaura
