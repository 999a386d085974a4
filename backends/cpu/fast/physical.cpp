#include "backends/cpu/fast/physical.h"

namespace plexaura::fast {

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

}  // namespace plexaura::fast
