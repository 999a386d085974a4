#include "backends/cpu/fast/physical.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/fast/parallel.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_run = 2;  // to clear a few neighbours

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

PaddingEraser::PaddingEraser(const Layout& layout, const TensorType& type) {
  const auto element_bytes = static_cast<std::int64_t>(size_of(type.dtype));
  auto offsets = layout.axis_offsets(layout.padded(type.shape));
  for (auto& along : offsets)
    for (std::int64_t& offset : along) offset *= element_bytes;
  for (std::size_t axis = 0; axis < offsets.size(); ++axis) {
    const auto extent = static_cast<std::size_t>(type.shape[static_cast<std::int64_t>(axis)]);
    if (offsets[axis].size() == extent) continue;
    Band band;
    for (std::size_t index = extent; index < offsets[axis].size(); ++index)
      append(band.runs, {offsets[axis][index], element_bytes});
    for (std::size_t other = 0; other < offsets.size(); ++other)
      if (other != axis) band.corners.push_back(offsets[other]);
    if (band.corners.empty()) band.corners.push_back({0});
    for (std::size_t i = 0; i + 1 < band.corners.size(); ++i)
      band.rows *= static_cast<std::int64_t>(band.corners[i].size());
    bands_.push_back(std::move(band));
  }
}

void PaddingEraser::append(std::vector<Run>& runs, Run run) {
  if (!runs.empty() && runs.back().begin + runs.back().bytes == run.begin)
    runs.back().bytes += run.bytes;
  else
    runs.push_back(run);
}

void PaddingEraser::erase(std::byte* data) const {
  for (const Band& band : bands_) band.erase(data);
}

void PaddingEraser::Band::erase(std::byte* data) const {
  const auto runs_of_row = static_cast<double>(runs.size() * corners.back().size());
  parallel_pieces(rows, nanoseconds_per_run * runs_of_row, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) erase_row(data, row);
  });
}

void PaddingEraser::Band::erase_row(std::byte* data, std::int64_t row) const {
  for (std::size_t axis = corners.size() - 1; axis-- > 0;) {
    const auto extent = static_cast<std::int64_t>(corners[axis].size());
    data += corners[axis][static_cast<std::size_t>(row % extent)];
    row /= extent;
  }
  for (const std::int64_t corner : corners.back())
    for (const Run& run : runs)
      std::memset(data + corner + run.begin, 0, static_cast<std::size_t>(run.bytes));
}

}  // namespace plexaura::fast
