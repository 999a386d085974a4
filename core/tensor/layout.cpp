#include "core/tensor/layout.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/tensor/reorder_plan.h"

namespace plexaura {

Layout::Layout(std::vector<std::int64_t> order, std::vector<Block> blocks)
    : order_(std::move(order)), blocks_(std::move(blocks)) {
  std::vector<std::int64_t> sorted = order_;
  std::ranges::sort(sorted);
  for (std::size_t axis = 0; axis < sorted.size(); ++axis)
    if (sorted[axis] != static_cast<std::int64_t>(axis))
      throw InternalError("a layout's order must name each axis once");
}

Layout Layout::row_major(std::int64_t rank) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return Layout(std::move(order));
}

bool Layout::is_row_major() const { return blocks_.empty() && std::ranges::is_sorted(order_); }

std::int64_t Layout::block_of(std::int64_t axis) const {
  std::int64_t size = 1;
  for (const Block& block : blocks_)
    if (block.axis == axis) size *= block.size;
  return size;
}

Shape Layout::padded(const Shape& shape) const {
  std::vector<std::int64_t> extents = shape.extents();
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const std::int64_t block = block_of(static_cast<std::int64_t>(axis));
    extents[axis] = (extents[axis] + block - 1) / block * block;
  }
  return Shape(std::move(extents));
}

std::int64_t Layout::elements(const Shape& shape) const { return padded(shape).elements(); }

std::int64_t Layout::bytes(const TensorType& type) const {
  return elements(type.shape) * static_cast<std::int64_t>(size_of(type.dtype));
}

std::vector<std::int64_t> Layout::outer_strides(const Shape& shape) const {
  const Shape extents = padded(shape);
  std::int64_t step = 1;
  for (const Block& block : blocks_) step *= block.size;
  std::vector<std::int64_t> strides(order_.size());
  for (auto axis = order_.rbegin(); axis != order_.rend(); ++axis) {
    strides[static_cast<std::size_t>(*axis)] = step;
    step *= extents[*axis] / block_of(*axis);
  }
  return strides;
}

std::vector<std::vector<std::int64_t>> Layout::axis_offsets(const Shape& shape) const {
  const std::vector<std::int64_t> outer = outer_strides(shape);
  std::vector<std::vector<std::int64_t>> offsets(order_.size());
  for (std::int64_t axis = 0; axis < rank(); ++axis) {
    auto& table = offsets[static_cast<std::size_t>(axis)];
    table.resize(static_cast<std::size_t>(shape[axis]));
    for (std::int64_t index = 0; index < shape[axis]; ++index) {
      std::int64_t offset = 0;
      std::int64_t rest = index;
      std::int64_t step = 1;
      for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
        if (block->axis == axis) {
          offset += rest % block->size * step;
          rest /= block->size;
        }
        step *= block->size;
      }
      table[static_cast<std::size_t>(index)] = offset + rest * outer[static_cast<std::size_t>(axis)];
    }
  }
  return offsets;
}

std::string to_string(const Layout& layout) {
  if (layout.rank() == 0) return "scalar";
  std::string text;
  for (const std::int64_t axis : layout.order())
    text += static_cast<char>((layout.block_of(axis) > 1 ? 'A' : 'a') + axis);
  for (const Layout::Block& block : layout.blocks())
    text += std::to_string(block.size) + static_cast<char>('a' + block.axis);
  return text;
}

void reorder(const std::byte* src, const Layout& from, std::byte* dst, const Layout& to,
             const TensorType& type) {
  ReorderPlan(from, to, type).run(src, dst);
}

}  // namespace plexaura
