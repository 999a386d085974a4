#include "backends/cpu/fast/pixel_view.h"

#include "backends/cpu/fast/channel_view.h"

namespace plexaura::fast {

std::optional<PixelView> pixel_view(const Layout& layout, const Shape& shape) {
  if (shape.rank() != 4) return std::nullopt;
  const auto of = channel_view(layout, shape);
  if (!of) return std::nullopt;
  const std::int64_t pixels = shape[2] * shape[3];
  PixelView view;
  view.samples = shape[0];
  view.height = shape[2];
  view.width = shape[3];
  view.blocks = of->blocks;
  view.lanes = of->lanes;
  view.channels = of->channels;
  view.block_stride = of->block_stride;
  view.pixel_stride = of->row_stride;
  const bool is_blocked = of->row_stride == of->lanes && of->block_stride == pixels * of->lanes;
  view.sample_stride = is_blocked ? of->blocks * of->block_stride : pixels * of->row_stride;
  return view;
}

}  // namespace plexaura::fast
