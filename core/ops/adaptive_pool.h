#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"
#include "core/ops/window.h"

namespace plexaura {

// The mean, or the largest element, of each of `output` windows of about the same size, which together cover the
// image: x [N, C, L] or [N, C, H, W] -> [N, C, output], where `output` is 1 or more along each axis. Along an axis
// window i is from i H / OH, rounded down, to (i + 1) H / OH, rounded up. If several are largest, the first one gets
// the gradient. Floating. pool3d.h has them for volumes.
PLEXAURA_API Node adaptive_avg_pool1d(Operand x, std::int64_t output);
PLEXAURA_API Node adaptive_max_pool1d(Operand x, std::int64_t output);
PLEXAURA_API Node adaptive_avg_pool2d(Operand x, Size2d output);
PLEXAURA_API Node adaptive_max_pool2d(Operand x, Size2d output);

// The largest element of each channel of each sample, over all axes after the first two: [N, C, ...] -> [N,
// C]. Equal elements share the gradient evenly.
PLEXAURA_API Node global_max_pool(Operand x);

}  // namespace plexaura
