#include "backends/cpu/fast/physical.h"

#include <algorithm>
#include <cstring>

namespace plexaura::fast {

namespace {

// The step of an operand along each physical axis of the result; 0 where it is stretched.
std::vector<std::int64_t> strides_beside(const std::vector<PhysicalAxis>& axes, const Shape& shape,
                                         const Shape& operand) {
  const std::int64_t shift = shape.rank() - operand.rank();
  std::vector<std::int64_t> strides(axes.size());
  std::int64_t step = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const std::int64_t own = axes[i].axis - shift;
    const bool stretched = own < 0 || operand[own] != shape[axes[i].axis];
    strides[i] = stretched ? 0 : step;
    if (!stretched) step *= axes[i].extent;
  }
  return strides;
}

bool joins(const LoopNest& nest, std::size_t outer) {
  return std::ranges::all_of(nest.strides, [&](const auto& strides) {
    return strides[outer] == strides[outer + 1] * nest.extents[outer + 1];
  });
}

void remove_loop(LoopNest& nest, std::size_t loop) {
  const auto at = static_cast<std::ptrdiff_t>(loop);
  nest.extents.erase(nest.extents.begin() + at);
  for (auto& strides : nest.strides) strides.erase(strides.begin() + at);
}

}  // namespace

std::vector<PhysicalAxis> physical_axes(const Layout& layout, const Shape& shape) {
  const Shape padded = layout.padded(shape);
  std::vector<PhysicalAxis> axes;
  for (const std::int64_t axis : layout.order()) axes.push_back({axis, padded[axis] / layout.block_of(axis)});
  for (const Layout::Block& block : layout.blocks()) axes.push_back({block.axis, block.size});
  return axes;
}

Layout beside(const Layout& layout, const Shape& shape, const Shape& operand) {
  const std::int64_t shift = shape.rank() - operand.rank();
  std::vector<std::int64_t> order;
  for (const std::int64_t axis : layout.order())
    if (axis >= shift) order.push_back(axis - shift);
  std::vector<Layout::Block> blocks;
  for (const Layout::Block& block : layout.blocks())
    if (block.axis >= shift && operand[block.axis - shift] == shape[block.axis])
      blocks.push_back({block.axis - shift, block.size});
  return Layout(std::move(order), std::move(blocks));
}

bool has_padding(const Layout& layout, const Shape& shape) {
  return layout.elements(shape) != shape.elements();
}

LoopNest nest_of(const Layout& layout, const Shape& shape, const std::vector<Shape>& operands) {
  const std::vector<PhysicalAxis> axes = physical_axes(layout, shape);
  LoopNest nest;
  for (const PhysicalAxis& axis : axes) nest.extents.push_back(axis.extent);
  for (const Shape& operand : operands) nest.strides.push_back(strides_beside(axes, shape, operand));
  nest.extents.push_back(1);
  for (auto& strides : nest.strides) strides.push_back(1);
  for (std::size_t loop = nest.extents.size(); loop-- > 0;)
    if (nest.extents[loop] == 1 && nest.extents.size() > 1) remove_loop(nest, loop);
  for (std::size_t outer = nest.extents.size() - 1; outer-- > 0;) {
    if (!joins(nest, outer)) continue;
    nest.extents[outer + 1] *= nest.extents[outer];
    remove_loop(nest, outer);
  }
  return nest;
}

PaddingEraser::PaddingEraser(const Layout& layout, const TensorType& type)
    : offsets_(layout.axis_offsets(layout.padded(type.shape))), element_bytes_(size_of(type.dtype)) {
  for (const std::int64_t extent : type.shape) extents_.push_back(static_cast<std::size_t>(extent));
}

void PaddingEraser::erase(std::byte* data) const {
  for (std::size_t axis = 0; axis < extents_.size(); ++axis)
    if (offsets_[axis].size() > extents_[axis]) erase_axis(data, axis);
}

// Everything whose index along the axis lies behind the last element.
void PaddingEraser::erase_axis(std::byte* data, std::size_t axis) const {
  const auto first = [&](std::size_t a) { return a == axis ? extents_[a] : 0; };
  std::vector<std::size_t> index(extents_.size());
  for (std::size_t a = 0; a < index.size(); ++a) index[a] = first(a);
  while (true) {
    std::int64_t offset = 0;
    for (std::size_t a = 0; a < index.size(); ++a) offset += offsets_[a][index[a]];
    std::memset(data + static_cast<std::size_t>(offset) * element_bytes_, 0, element_bytes_);
    std::size_t a = index.size();
    while (a > 0 && ++index[a - 1] == offsets_[a - 1].size()) {
      --a;
      index[a] = first(a);
    }
    if (a == 0) return;
  }
}

}  // namespace plexaura::fast
