#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/layout.h"

namespace plexaura::fast {

// Nested loops over the elements of a result, with the step of each operand along each loop. Loops that go on
// where the one inside ended have been joined.
struct LoopNest {
  std::vector<std::int64_t> extents;               // outermost first, at least one
  std::vector<std::vector<std::int64_t>> strides;  // [operand][loop], in elements
};

// `operands` broadcast to `shape`, and lie beside it.
LoopNest nest_of(const Layout& layout, const Shape& shape, const std::vector<Shape>& operands);

}  // namespace plexaura::fast
