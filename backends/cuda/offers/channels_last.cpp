#include "backends/cuda/offers/channels_last.h"

#include <algorithm>

namespace plexaura::cuda {

namespace {

constexpr std::int64_t axes_of_images = 4;

}  // namespace

const Layout& channels_last() {
  static const Layout layout({0, 2, 3, 1});
  return layout;
}

Layout layout_with_channels_last(const TensorType& type) {
  return type.shape.rank() == axes_of_images ? channels_last() : Layout::row_major(type.shape.rank());
}

bool comes_channels_last(const RegionQuery& query) {
  return std::ranges::find(query.given, channels_last()) != query.given.end();
}

bool has_few_channels(const TensorType& type) {
  return size_of(type.dtype) == 2 && type.shape.rank() == axes_of_images &&
         type.shape[1] < channels_in_16_bits;
}

const Layout& padded() {
  static const Layout layout({0, 2, 3, 1}, {{1, channels_in_16_bits}});
  return layout;
}

Shape with_padding(const Shape& images) { return {images[0], channels_in_16_bits, images[2], images[3]}; }

std::optional<TensorType> with_channels_last(const TensorType& type) {
  const std::int64_t missing = axes_of_images - type.shape.rank();
  if (missing < 0) return std::nullopt;
  const auto extent = [&](std::int64_t axis) { return axis < missing ? 1 : type.shape[axis - missing]; };
  const bool moves = extent(1) > 1 && extent(2) * extent(3) > 1;
  if (missing > 0 && moves) return std::nullopt;
  return TensorType{type.dtype, {extent(0), extent(2), extent(3), extent(1)}};
}

std::optional<std::vector<TensorType>> with_channels_last(const std::vector<TensorType>& types) {
  std::vector<TensorType> moved;
  for (const TensorType& type : types) {
    const auto of = with_channels_last(type);
    if (!of) return std::nullopt;
    moved.push_back(*of);
  }
  return moved;
}

}  // namespace plexaura::cuda
