#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/pool3d.h"

namespace plexaura {

// The windows of a pooling op along one axis. `place` is the number of a window.
struct PoolAxis {
  std::int64_t input;
  std::int64_t output;
  bool adaptive;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;

  // The window reaches from start() to stop(), which is exclusive. Both may lie in the padding.
  std::int64_t start(std::int64_t place) const {
    return adaptive ? place * input / output : place * stride - padding;
  }
  std::int64_t stop(std::int64_t place) const {
    if (adaptive) return ((place + 1) * input - 1) / output + 1;
    return std::min(start(place) + kernel, input + padding);
  }
  // The number by which a sum over the window is divided.
  std::int64_t divisor(std::int64_t place, bool count_include_pad) const {
    return count_include_pad ? stop(place) - start(place) : end(place) - begin(place);
  }
  // The part of the window that lies in the image.
  std::int64_t begin(std::int64_t place) const { return std::max<std::int64_t>(0, start(place)); }
  std::int64_t end(std::int64_t place) const { return std::min(input, stop(place)); }

  // The first and the last window that contain a position of the image.
  std::int64_t first_viewer(std::int64_t position) const {
    if (adaptive) return position * output / input;
    const std::int64_t moved = position + padding;
    return moved < kernel ? 0 : (moved - kernel) / stride + 1;
  }
  std::int64_t last_viewer(std::int64_t position) const {
    if (adaptive) return ((position + 1) * output - 1) / input;
    return std::min(output - 1, (position + padding) / stride);
  }
};

struct PoolAxes {
  PoolAxis d;
  PoolAxis h;
  PoolAxis w;
};

inline PoolAxes pool_axes(const Pool3dOptions& options, Size3d input, Size3d output) {
  const Window3d& window = options.window;
  const bool adaptive = options.output.has_value();
  return {{input.d, output.d, adaptive, window.kernel.d, window.stride.d, window.padding.d},
          {input.h, output.h, adaptive, window.kernel.h, window.stride.h, window.padding.h},
          {input.w, output.w, adaptive, window.kernel.w, window.stride.w, window.padding.w}};
}

}  // namespace plexaura
