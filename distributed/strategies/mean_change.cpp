#include "distributed/strategies/mean_change.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <sstream>

#include "distributed/group/reduce.h"
#include "distributed/strategies/arena_state.h"

namespace plexaura {

namespace {

constexpr std::string_view steps_name = "steps";
constexpr std::string_view samples_name = "samples";
constexpr std::string_view taken_name = "means";
constexpr std::string_view mean_prefix = "mean.";

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
  steps_ = samples_ = taken_ = 0;
  holds_mean_ = false;
}

bool MeanChange::step(std::int64_t every) {
  samples_ += border_->place().samples;
  ++steps_;
  return is_due(every);
}

bool MeanChange::is_due(std::int64_t every) const {
  return steps_ >= every || (steps_ > 0 && border_->place().ends_epoch);
}

std::size_t MeanChange::trainables() const {
  return static_cast<std::size_t>(border_->placement().count(ParameterRole::trainable));
}

template <class T>
std::span<T> MeanChange::mean() {
  sum_changes<T>();
  holds_mean_ = true;
  if (may_lose_ranks_)
    ranks_.gather_all("", fmt::format("who has the mean of the weights after step {}", border_->step()));
  return take<T>();
}

template <class T>
void MeanChange::sum_changes() {
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
}

template <class T>
std::span<T> MeanChange::take() {
  holds_mean_ = false;
  ++taken_;
  steps_ = samples_ = 0;
  return changes_.as<T>().first(static_cast<std::size_t>(anchor_.elements()));
}

template <class T>
std::span<T> MeanChange::catch_up() {
  const auto [taken, steps] = farthest_progress();
  if (taken > taken_ && !holds_mean_)
    throw InternalError("ranks were lost, and others have taken a mean that this rank does not hold");
  const std::span<T> held = taken > taken_ ? take<T>() : std::span<T>();
  holds_mean_ = false;
  steps_ = steps;
  return held;
}

MeanChange::Progress MeanChange::farthest_progress() {
  Progress farthest{taken_, steps_};
  const std::string mine = fmt::format("{} {}", taken_, steps_);
  for (const std::string& text : ranks_.gather_all(mine, "the means that the ranks have taken")) {
    Progress theirs;
    std::istringstream(text) >> theirs.first >> theirs.second;
    farthest = std::max(farthest, theirs);
  }
  return farthest;
}

template std::span<float> MeanChange::mean();
template std::span<double> MeanChange::mean();
template std::span<float> MeanChange::catch_up();
template std::span<double> MeanChange::catch_up();

Tensor MeanChange::copy_values() const {
  Tensor copy(anchor_.type());
  std::memcpy(copy.data(), border_->fetch_values().data(), copy.bytes());
  return copy;
}

void MeanChange::write_values(const Tensor& copy) const {
  std::memcpy(border_->fetch_values().data(), copy.data(), copy.bytes());
}

void MeanChange::keep_counts(std::vector<StrategyState>& state) const {
  state.push_back({std::string(taken_name), Tensor::scalar(taken_)});
  if (steps_ == 0) return;
  state.push_back({std::string(steps_name), Tensor::scalar(steps_)});
  state.push_back({std::string(samples_name), Tensor::scalar(samples_), true});
  if (!holds_mean_) return;
  Tensor mean(anchor_.type());
  std::memcpy(mean.data(), changes_.data(), mean.bytes());
  keep_arena(border_->placement(), mean, mean_prefix, true, state);
}

void MeanChange::take_counts(const StrategyState& part) {
  if (part.name == taken_name) taken_ = part.value.as<std::int64_t>()[0];
  if (part.name == steps_name) steps_ = part.value.as<std::int64_t>()[0];
  if (part.name == samples_name) samples_ = part.value.as<std::int64_t>()[0];
  if (!part.name.starts_with(mean_prefix)) return;
  take_arena(border_->placement(), changes_, mean_prefix, part);
  holds_mean_ = true;
}

}  // namespace plexaura
