#include "backends/cpu/fast/loop_nest.h"

#include <algorithm>

#include "backends/cpu/fast/physical.h"

namespace plexaura::fast {

namespace {

// Returns the step of an operand along each physical axis of the result; 0 along axes that the operand is
// broadcast over.
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

}  // namespace plexaura::fast
