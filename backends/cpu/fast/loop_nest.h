#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/layout.h"

namespace plexaura::fast {

// Nested loops over the elements of a result, with the step of each operand along each loop. Two loops are
// joined into one if all operands continue in the outer loop where the inner one ends.
struct LoopNest {
  std::vector<std::int64_t> extents;               // outermost first, at least one
  std::vector<std::vector<std::int64_t>> strides;  // [operand][loop], in elements
};

// `operands` are shapes that broadcast to `shape`; their layouts are those of beside().
LoopNest nest_of(const Layout& layout, const Shape& shape, const std::vector<Shape>& operands);

}  // namespace plexaura::fast
