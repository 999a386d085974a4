#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/device/backend.h"

// The layouts in which the channels of a pixel are neighbours, as tensor cores need them.

namespace plexaura::cuda {

// The layout [N, H, W, C] of images [N, C, H, W], and of a convolution's weights.
const Layout& channels_last();

// Returns channels_last() for values with four axes, and the row-major layout for others.
Layout layout_with_channels_last(const TensorType& type);

bool comes_channels_last(const RegionQuery& query);  // true if one of the inputs has channels last

// In 16 bits the libraries compute with at least this many channels. Images [N, C, H, W], or weights, with
// fewer may be stored padded(): channels last, with zeros up to this number. Otherwise the libraries' plans
// make such a copy themselves.
constexpr std::int64_t channels_in_16_bits = 8;
bool has_few_channels(const TensorType& type);
const Layout& padded();
Shape with_padding(const Shape& images);  // shape of the images in that layout, padding included

// Returns the type of images [N, C, H, W] as a row-major value whose axes have the order of storage, [N, H, W, C].
// The axes of a value with fewer axes are the last of [N, C, H, W], and the others get the extent 1. Returns nothing
// for a value with more axes, and if a value with fewer axes, which is stored row-major, has another order.
std::optional<TensorType> with_channels_last(const TensorType& type);

// Converts all types with the function above. Returns nothing if it returns nothing for one of them.
std::optional<std::vector<TensorType>> with_channels_last(const std::vector<TensorType>& types);

}  // namespace plexaura::cuda
