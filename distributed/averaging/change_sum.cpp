#include "distributed/averaging/change_sum.h"

#include <algorithm>
#include <fmt/format.h>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/print.h"
#include "distributed/exchange/arena_state.h"

namespace plexaura {

namespace {

constexpr std::string_view owed_change_prefix = "owed_change.";
constexpr std::string_view left_change_prefix = "left_change.";
// The prefix of another kind of state: gradients that ranks owe, or changes multiplied by samples. A rank
// cannot add it to its part of a mean change.
constexpr std::string_view owed_otherwise_prefix = "owed.";

std::span<float> part_of(Tensor& memory, const Bucket& slice) {
  return memory.as<float>().subspan(static_cast<std::size_t>(slice.offset),
                                    static_cast<std::size_t>(slice.count));
}

}  // namespace

void ChangeSum::begin(const Placement& placement, std::span<const Bucket> slices) {
  placement_ = &placement;
  slices_.assign(slices.begin(), slices.end());
  if (!compression_) return;
  if (const DType dtype = placement.dtype(ArenaKind::value); dtype != DType::float32)
    throw UserError(
        fmt::format("distributed.compression compresses changes of float32 weights, not {}; set it to none",
                    name_of(dtype)));
  owed_ = Tensor({DType::float32, Shape{placement.count(ParameterRole::trainable)}});
  left_ = Tensor(owed_.type());
  compression_->begin(placement, slices_);
}

template <class T>
void ChangeSum::sum(std::size_t slice, std::span<T> changes, std::string_view what) {
  if constexpr (std::is_same_v<T, float>)
    if (compression_) changes = changes.subspan(compress(slice, changes, what));
  ranks_.sum(dtype_of<T>, reinterpret_cast<std::byte*>(changes.data()), std::ssize(changes), what);
}

// Sums the trainable parameters of the slice, which come first, by the compression. Returns the number of
// their elements.
std::size_t ChangeSum::compress(std::size_t slice, std::span<float> changes, std::string_view what) {
  const std::span<const float> owed = part_of(owed_, slices_[slice]);
  const std::span<float> left = part_of(left_, slices_[slice]);
  const std::span<float> sums = changes.first(owed.size());
  for (std::size_t i = 0; i < owed.size(); ++i) left[i] = owed[i] + sums[i];
  compression_->exchange(slice, left, sums, what);
  return sums.size();
}

void ChangeSum::accept(std::size_t slice) {
  if (compression_ && owes_)
    std::ranges::copy(part_of(left_, slices_[slice]), part_of(owed_, slices_[slice]).begin());
}

void ChangeSum::keep(bool is_accepted, std::vector<StrategyState>& state) const {
  if (!compression_ || !owes_) return;
  keep_arena(*placement_, owed_, owed_change_prefix, true, state);
  if (!is_accepted) keep_arena(*placement_, left_, left_change_prefix, true, state);
}

void ChangeSum::take(const StrategyState& part) {
  if (!compression_ || !owes_) return;
  if (part.name.starts_with(owed_otherwise_prefix) && !std::exchange(has_dropped_, true) &&
      ranks_.rank() == 0)
    print_error(
        "the part that the ranks still owe in this checkpoint was saved by another distributed.strategy or "
        "an "
        "older version of Plexaura, in a form that cannot be added to changes of weights: it is dropped, and "
        "training continues without it");
  take_arena(*placement_, owed_, owed_change_prefix, part);
  take_arena(*placement_, left_, left_change_prefix, part);
}

template void ChangeSum::sum(std::size_t, std::span<float>, std::string_view);
template void ChangeSum::sum(std::size_t, std::span<double>, std::string_view);

}  // namespace plexaura
