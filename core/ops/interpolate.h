#pragma once

#include <cstdint>
#include <vector>

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// The names and rules are PyTorch's. `nearest` and `nearest_exact` take three axes or more, `linear` [N, C, L],
// `bilinear` and `bicubic` [N, C, H, W], and `trilinear` [N, C, D, H, W].
enum class InterpolateMode : std::uint8_t { nearest, nearest_exact, linear, bilinear, bicubic, trilinear };

struct InterpolateOptions {
  // The size of the result. Exactly one of `size` and `scale` is given: a number for each axis after N and C,
  // or one number for all of them. An extent becomes `size`, or itself times `scale`, rounded down.
  std::vector<std::int64_t> size = {};
  std::vector<double> scale = {};
  InterpolateMode mode = InterpolateMode::nearest;
  // True: the centres of the first and of the last pixel stay at the ends of an axis. False: the borders of these
  // pixels do. An error for `nearest` and `nearest_exact`.
  bool align_corners = false;
};

// Changes the extents of images: x [N, C, ...] -> [N, C, ...]. Values between pixels are weighted means of the nearest
// pixel, of the two nearest, or, for `bicubic`, of the four nearest along each axis (with the parameter -0.75).
// `nearest` takes the pixel at i H / OH, rounded down, and `nearest_exact` the one at (i + 0.5) H / OH; if `scale` is
// given, 1 / scale takes the place of H / OH. No axis after N and C may be empty. 16-bit floats are computed in float32.
// Floating.
PLEXAURA_API Node interpolate(Operand x, InterpolateOptions options);

// Moves channels to pixels: x [N, C f f, H, W] -> [N, C, H f, W f], where f is `factor`, 1 or more. Any dtype.
PLEXAURA_API Node pixel_shuffle(Operand x, std::int64_t factor);
// The inverse of pixel_shuffle(): x [N, C, H f, W f] -> [N, C f f, H, W].
PLEXAURA_API Node pixel_unshuffle(Operand x, std::int64_t factor);

}  // namespace plexaura
