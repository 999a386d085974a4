#include "core/tensor/layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/error.h"

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

namespace {

template <class Element>
void copy_elements(const std::byte* src, const Layout& from, std::byte* dst, const Layout& to, const Shape& shape) {
  const auto* source = reinterpret_cast<const Element*>(src);
  auto* target = reinterpret_cast<Element*>(dst);
  if (shape.rank() == 0) {
    *target = *source;
    return;
  }
  const auto read = from.axis_offsets(shape);
  const auto write = to.axis_offsets(shape);
  const std::size_t last = read.size() - 1;
  std::vector<std::size_t> index(read.size(), 0);
  while (true) {
    std::int64_t read_base = 0;
    std::int64_t write_base = 0;
    for (std::size_t axis = 0; axis < last; ++axis) {
      read_base += read[axis][index[axis]];
      write_base += write[axis][index[axis]];
    }
    for (std::size_t i = 0; i < read[last].size(); ++i)
      target[write_base + write[last][i]] = source[read_base + read[last][i]];
    std::size_t axis = last;
    while (axis > 0 && ++index[axis - 1] == read[axis - 1].size()) index[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace

void reorder(const std::byte* src, const Layout& from, std::byte* dst, const Layout& to, const TensorType& type) {
  const auto bytes = static_cast<std::size_t>(to.bytes(type));
  if (from == to) {
    std::memcpy(dst, src, bytes);
    return;
  }
  if (to.elements(type.shape) != type.shape.elements()) std::memset(dst, 0, bytes);
  if (type.shape.elements() == 0) return;
  switch (size_of(type.dtype)) {
    case 8: return copy_elements<std::uint64_t>(src, from, dst, to, type.shape);
    case 4: return copy_elements<std::uint32_t>(src, from, dst, to, type.shape);
    case 2: return copy_elements<std::uint16_t>(src, from, dst, to, type.shape);
    default: return copy_elements<std::uint8_t>(src, from, dst, to, type.shape);
  }
}

}  // namespace plexaura
