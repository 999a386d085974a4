#pragma once

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

// The value as a row-major one whose axes stand in the order in which they lie, [N, H, W, C]; fewer axes are the last of
// four. Empty where a value of fewer axes lies in another order.
std::optional<TensorType> with_channels_last(const TensorType& type);

// All of them; empty where one has none.
std::optional<std::vector<TensorType>> with_channels_last(const std::vector<TensorType>& types);

}  // namespace plexaura::cuda
