#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/tensor/shape.h"

namespace plexaura {

// The order of a value's elements in memory: a permutation of its logical elements plus zero padding. The
// axes follow each other in `order`, outermost first. Within them come blocks that were split off an axis,
// innermost last. NCHW in blocks of 16 channels is order {0,1,2,3} with block {1,16}; channels last padded to
// 8 is order {0,2,3,1} with block {1,8}. An axis is padded to a multiple of its blocks. Backends choose
// layouts; users never see them. Several threads may read a Layout at once.
class PLEXAURA_API Layout {
 public:
  struct Block {
    std::int64_t axis;
    std::int64_t size;
    bool operator==(const Block&) const = default;
  };

  Layout() = default;  // the layout of a scalar
  explicit Layout(std::vector<std::int64_t> order, std::vector<Block> blocks = {});
  static Layout row_major(std::int64_t rank);

  std::int64_t rank() const { return static_cast<std::int64_t>(order_.size()); }
  const std::vector<std::int64_t>& order() const { return order_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  bool is_row_major() const;

  // Product of the block sizes of the axis; 1 if it has no blocks.
  std::int64_t block_of(std::int64_t axis) const;
  Shape padded(const Shape& shape) const;           // the extent of each logical axis, padding included
  std::int64_t elements(const Shape& shape) const;  // number of physical elements, padding included
  std::int64_t bytes(const TensorType& type) const;
  // Returns for each logical axis the distance, in elements, from one of its blocks to the next one. For an
  // axis without blocks it is the distance between neighbouring elements.
  std::vector<std::int64_t> outer_strides(const Shape& shape) const;

  // Returns offsets[axis][index]. The physical offset of an element is the sum of one of these for each axis.
  std::vector<std::vector<std::int64_t>> axis_offsets(const Shape& shape) const;

  bool operator==(const Layout&) const = default;

 private:
  std::vector<std::int64_t> order_;
  std::vector<Block> blocks_;
};

// Returns "scalar", or a text such as "aBcd16b": letters are axes, and capitals are axes with blocks.
PLEXAURA_API std::string to_string(const Layout& layout);

// Copies a value from one layout to another in host memory. Padding of the target becomes zero. `src` and
// `dst` must not overlap. Several threads may run it at once, with different `dst`.
PLEXAURA_API void reorder(const std::byte* src, const Layout& from, std::byte* dst, const Layout& to,
                          const TensorType& type);

}  // namespace plexaura
