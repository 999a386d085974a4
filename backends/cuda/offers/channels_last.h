#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/device/backend.h"

// The layout in which the channels of a pixel lie beside each other, as tensor cores want them.

namespace plexaura::cuda {

// Of images [N, C, H, W], and of a convolution's weights.
const Layout& channels_last();

// channels_last() for values of four axes, row-major for others.
Layout layout_with_channels_last(const TensorType& type);

bool comes_channels_last(const RegionQuery& query);  // one of the inputs does

// Images [N, C, H, W], or weights, of fewer channels than the libraries compute with in 16 bits. They may lie padded(): channels
// last, with zeros up to so many; otherwise the libraries' plans make a copy that does.
constexpr std::int64_t channels_in_16_bits = 8;
bool has_few_channels(const TensorType& type);
const Layout& padded();
Shape with_padding(const Shape& images);  // as they lie then

// The value as a row-major one whose axes stand in the order in which they lie, [N, H, W, C]; fewer axes are the last of
// four. Empty where a value of fewer axes lies in another order.
std::optional<TensorType> with_channels_last(const TensorType& type);

// All of them; empty where one has none.
std::optional<std::vector<TensorType>> with_channels_last(const std::vector<TensorType>& types);

}  // namespace plexaura::cuda
