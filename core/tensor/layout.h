#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/tensor/shape.h"

namespace plexaura {

// How a value lies in memory: a permutation of its logical elements plus zero padding. The axes stand in
// `order`, outermost first; inside them, innermost last, stand blocks that were split off an axis. NCHW in
// blocks of 16 channels is order {0,1,2,3} with block {1,16}; channels last padded to 8 is order {0,2,3,1}
// with block {1,8}. An axis is padded to a multiple of its blocks. Users never see a layout: it is chosen by
// a backend. A value; several threads may read it at once.
class PLEXAURA_API Layout {
 public:
  struct Block {
    std::int64_t axis;
    std::int64_t size;
    bool operator==(const Block&) const = default;
  };

  Layout() = default;  // of a scalar
  explicit Layout(std::vector<std::int64_t> order, std::vector<Block> blocks = {});
  static Layout row_major(std::int64_t rank);

  std::int64_t rank() const { return static_cast<std::int64_t>(order_.size()); }
  const std::vector<std::int64_t>& order() const { return order_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  bool is_row_major() const;

  std::int64_t block_of(std::int64_t axis) const;   // product of the axis' blocks, 1 for none
  Shape padded(const Shape& shape) const;           // logical axes, extents with padding
  std::int64_t elements(const Shape& shape) const;  // physical, padding included
  std::int64_t bytes(const TensorType& type) const;
  std::vector<std::int64_t> outer_strides(
      const Shape& shape) const;  // of an axis' outermost piece, by logical axis

  // The physical offset is a sum of one term per axis: offsets[axis][index].
  std::vector<std::vector<std::int64_t>> axis_offsets(const Shape& shape) const;

  bool operator==(const Layout&) const = default;

 private:
  std::vector<std::int64_t> order_;
  std::vector<Block> blocks_;
};

PLEXAURA_API std::string to_string(
    const Layout& layout);  // "aBcd16b": letters are axes, capitals are blocked

// Copies a value from one layout to another in host memory; padding of the target becomes zero. `src` and
// `dst` do not overlap. May run in several threads at once, with a `dst` for each.
PLEXAURA_API void reorder(const std::byte* src, const Layout& from, std::byte* dst, const Layout& to,
                          const TensorType& type);

}  // namespace plexaura
