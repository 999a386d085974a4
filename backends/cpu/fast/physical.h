#pragma once

#include <cstddef>
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

// Nested loops over the elements of a result, with the step of each operand along each loop. Loops that go on
// where the one inside ended have been joined.
struct LoopNest {
  std::vector<std::int64_t> extents;               // outermost first, at least one
  std::vector<std::vector<std::int64_t>> strides;  // [operand][loop], in elements
};

// `operands` broadcast to `shape`, and lie beside it.
LoopNest nest_of(const Layout& layout, const Shape& shape, const std::vector<Shape>& operands);

// Sets the padding of a value to zero. What there is to clear is found when it is made; erase() allocates
// nothing.
class PaddingEraser {
 public:
  PaddingEraser(const Layout& layout, const TensorType& type);
  void erase(std::byte* data) const;

 private:
  struct Run {
    std::int64_t begin;
    std::int64_t bytes;
  };

  // Everything whose index along one axis lies behind the last element.
  struct Band {
    std::vector<Run> runs;                           // along the axis
    std::vector<std::vector<std::int64_t>> corners;  // of each index along the other axes, padding included
    std::int64_t rows = 1;                           // of all corners but the last axis'

    void erase(std::byte* data) const;
    void erase_row(std::byte* data, std::int64_t row) const;
  };

  static void append(std::vector<Run>& runs, Run run);

  std::vector<Band> bands_;
};

}  // namespace plexaura::fast
