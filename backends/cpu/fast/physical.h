#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/layout.h"

// Values as they lie in memory: a layout's pieces of axes are the axes of a plain row-major array.

namespace plexaura::fast {

struct PhysicalAxis {
  std::int64_t axis;    // of which this is a piece
  std::int64_t extent;  // padding included
};

// Outermost first: the order's axes, then the blocks.
std::vector<PhysicalAxis> physical_axes(const Layout& layout, const Shape& shape);

// The layout in which a value that broadcasts to `shape` is read beside one in `layout`: the same order and
// blocks, without blocks along what is stretched.
Layout beside(const Layout& layout, const Shape& shape, const Shape& operand);

bool has_padding(const Layout& layout, const Shape& shape);

}  // namespace plexaura::fast
