#include "backends/cpu/fast/pixel_view.h"

namespace plexaura::fast {

std::optional<PixelView> pixel_view(const Layout& layout, const Shape& shape) {
  if (shape.rank() != 4) return std::nullopt;
  const auto of = channel_view(layout, shape);
  if (!of) return std::nullopt;
  PixelView view{*of, shape[2], shape[3]};
  if (view.samples != shape[0]) {  // the view has joined the rows of all samples
    view.samples = shape[0];
    view.rows = view.height * view.width;
    view.sample_stride = view.rows * view.row_stride;
  }
  return view;
}

}  // namespace plexaura::fast
