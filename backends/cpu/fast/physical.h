#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/layout.h"

// A value as it lies in memory: a plain row-major array whose axes are the layout's axes and blocks.

namespace plexaura::fast {

struct PhysicalAxis {
  std::int64_t axis;    // the logical axis to which the physical axis belongs
  std::int64_t extent;  // the extent, padding included
};

// Returns the axes, outermost first: those of the layout's order, then its blocks.
std::vector<PhysicalAxis> physical_axes(const Layout& layout, const Shape& shape);

// Returns the layout for reading an operand that broadcasts to `shape` together with a value in `layout`: the
// same order and blocks, but no blocks along axes that are broadcast.
Layout beside(const Layout& layout, const Shape& shape, const Shape& operand);

bool has_padding(const Layout& layout, const Shape& shape);

}  // namespace plexaura::fast
