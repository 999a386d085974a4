#include "distributed/strategies/local.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <span>
#include <string_view>
#include <utility>

#include "core/tensor/layout.h"
#include "distributed/group/reduce.h"

namespace plexaura {

namespace {

constexpr std::string_view anchor_prefix = "anchor.";
constexpr std::string_view velocity_prefix = "velocity.";

// Whether what lies like the value arena, up to its end, holds this parameter.
bool holds(const Tensor& arena, const Placement::Entry& entry) {
  return entry.offset + entry.count <= arena.elements();
}

// The parameter in logical layout.
Tensor read_part(const Tensor& arena, const Placement::Entry& entry) {
  Tensor value(entry.type);
  reorder(arena.data() + bytes_of(arena.dtype(), entry.offset), entry.layout, value.data(),
          Layout::row_major(entry.type.shape.rank()), entry.type);
  return value;
}

void write_part(Tensor& arena, const Placement::Entry& entry, const Tensor& value) {
  reorder(value.data(), Layout::row_major(entry.type.shape.rank()),
          arena.data() + bytes_of(arena.dtype(), entry.offset), entry.layout, entry.type);
}

}  // namespace

void Local::begin(WeightsImmigration& border) {
  const Placement& placement = border.placement();
  const DType dtype = placement.dtype(ArenaKind::value);
  check_summable(dtype);
  border_ = &border;
  const std::int64_t trainables = placement.count(ParameterRole::trainable);
  const std::int64_t elements = trainables + placement.count(ParameterRole::buffer);
  anchor_ = Tensor({dtype, Shape{elements}});
  velocity_ = Tensor({dtype, Shape{has_velocity() ? trainables : 0}});
  changes_ = Tensor({dtype, Shape{elements + 1}});
  std::memcpy(anchor_.data(), border.fetch_values().data(), anchor_.bytes());
  steps_ = samples_ = 0;
}

void Local::after_update() {
  const StepPlace& place = border_->place();
  ++steps_;
  samples_ += place.samples;
  if (steps_ < options_.every && place.epoch >= options_.first_epochs && !place.ends_epoch) return;
  if (anchor_.dtype() == DType::float64)
    average<double>();
  else
    average<float>();
  steps_ = samples_ = 0;
}

template <class T>
void Local::average() {
  const std::span<T> anchor = anchor_.as<T>();
  const std::span<T> changes = changes_.as<T>();
  const std::span<T> values(reinterpret_cast<T*>(border_->fetch_values().data()), anchor.size());
  const T own = static_cast<T>(samples_);
  for (std::size_t i = 0; i < anchor.size(); ++i) changes[i] = own * (values[i] - anchor[i]);
  changes.back() = own;
  ranks_.sum(changes_.dtype(), changes_.data(), changes_.elements(),
             fmt::format("the weights after step {}", border_->step()));
  const T all = std::max(changes.back(), T{1});  // none where each rank fails in its first step
  for (T& change : changes) change /= all;
  if (border_->place().epoch >= options_.first_epochs) take_outer_step<T>();
  for (std::size_t i = 0; i < anchor.size(); ++i) values[i] = anchor[i] += changes[i];
  border_->store_values();
}

// Puts the step of the outer optimizer in the place of the average change.
template <class T>
void Local::take_outer_step() {
  const auto trainables = static_cast<std::size_t>(border_->placement().count(ParameterRole::trainable));
  const std::span<T> changes = changes_.as<T>().first(trainables);
  if (has_velocity()) {
    const T momentum = static_cast<T>(options_.outer_momentum);
    const std::span<T> velocity = velocity_.as<T>();
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
  const auto keep = [&](std::string_view prefix, const Tensor& arena) {
    for (const Placement::Entry& entry : border_->placement().entries)
      if (holds(arena, entry))
        state.push_back({fmt::format("{}{}", prefix, entry.name), read_part(arena, entry)});
  };
  keep(velocity_prefix, velocity_);
  if (steps_ == 0) return state;  // the weights are what was averaged last
  keep(anchor_prefix, anchor_);
  state.push_back({"steps", Tensor::scalar(steps_)});
  state.push_back({"samples", Tensor::scalar(samples_), true});
  return state;
}

void Local::take_state(std::vector<StrategyState> state) {
  const auto take = [&](const StrategyState& part, std::string_view prefix, Tensor& arena) {
    if (!part.name.starts_with(prefix)) return;
    const Placement::Entry* entry = border_->placement().find(part.name.substr(prefix.size()));
    if (entry != nullptr && holds(arena, *entry) && part.value.type() == entry->type)
      write_part(arena, *entry, part.value);
  };
  for (const StrategyState& part : state) {
    take(part, velocity_prefix, velocity_);
    take(part, anchor_prefix, anchor_);
    if (part.name == "steps") steps_ = part.value.as<std::int64_t>()[0];
    if (part.name == "samples") samples_ = part.value.as<std::int64_t>()[0];
  }
}

}  // namespace plexaura
