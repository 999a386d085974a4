#include "backends/cpu/fast/channel_view.h"

#include <algorithm>
#include <vector>

namespace plexaura::fast {

namespace {

std::int64_t positions(const Shape& shape) {
  std::int64_t count = 1;
  for (std::int64_t axis = 2; axis < shape.rank(); ++axis) count *= shape[axis];
  return count;
}

bool is_channels_last(const Layout& layout) {
  const auto& order = layout.order();
  if (!layout.blocks().empty() || order.front() != 0 || order.back() != 1) return false;
  return std::is_sorted(order.begin(), order.end() - 1);
}

std::optional<ChannelView> blocked_view(const Layout& layout, const Shape& shape) {
  const std::int64_t lanes = layout.block_of(1);
  if (!std::ranges::is_sorted(layout.order()) || layout.blocks().size() != 1 || (lanes != 8 && lanes != 16))
    return std::nullopt;
  ChannelView view;
  view.samples = shape[0];
  view.blocks = (shape[1] + lanes - 1) / lanes;
  view.rows = positions(shape);
  view.lanes = view.row_stride = lanes;
  view.block_stride = view.rows * lanes;
  view.sample_stride = view.blocks * view.block_stride;
  view.channels = shape[1];
  return view;
}

std::optional<ChannelView> channels_last_view(const Shape& shape) {
  const std::int64_t lanes = shape[1] % 16 == 0 ? 16 : 8;
  if (shape[1] % lanes != 0) return std::nullopt;
  ChannelView view;
  view.samples = 1;
  view.blocks = shape[1] / lanes;
  view.rows = shape[0] * positions(shape);
  view.lanes = view.block_stride = lanes;
  view.row_stride = shape[1];
  view.sample_stride = view.rows * shape[1];
  view.channels = shape[1];
  return view;
}

}  // namespace

std::optional<ChannelView> channel_view(const Layout& layout, const Shape& shape) {
  if (shape.rank() < 2) return std::nullopt;
  return is_channels_last(layout) ? channels_last_view(shape) : blocked_view(layout, shape);
}

Layout blocked_layout(const Shape& shape) {
  const std::int64_t behind_whole_blocks = shape[1] % 16;
  const std::int64_t lanes = behind_whole_blocks > 0 && behind_whole_blocks <= 8 ? 8 : 16;
  return Layout(Layout::row_major(shape.rank()).order(), {{1, lanes}});
}

}  // namespace plexaura::fast
