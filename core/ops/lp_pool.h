#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/node.h"
#include "core/ops/window.h"

namespace plexaura {

template <class Size>
struct LpPoolOptions {
  double p = 2;  // order of the norm: a finite number above 0
  Size kernel{1};
  std::optional<Size> stride = {};  // distance between windows; by default the size of the kernel
  // True: windows may reach beyond the input, if they begin in it. The sum of such a window is the sum of the
  // elements in the input, multiplied by the size of the window and divided by the number of these elements.
  bool ceil_mode = false;
};

using LpPool1dOptions = LpPoolOptions<std::int64_t>;
using LpPool2dOptions = LpPoolOptions<Size2d>;
using LpPool3dOptions = LpPoolOptions<Size3d>;

// The p-norm of each window, (sum |x|^p)^(1/p): x [N, C, ...] with one, two or three axes more -> [N, C, ...], of
// which, for example, OH = (H - KH) / stride + 1, rounded down, or up in ceil mode. The gradient is 0 where the norm
// is 0. Floating.
PLEXAURA_API Node lp_pool1d(Operand x, LpPool1dOptions options);
PLEXAURA_API Node lp_pool2d(Operand x, LpPool2dOptions options);
PLEXAURA_API Node lp_pool3d(Operand x, LpPool3dOptions options);

}  // namespace plexaura
