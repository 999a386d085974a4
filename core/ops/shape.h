#pragma once

#include <vector>

#include "core/export.h"
#include "core/graph/node.h"

namespace plexaura {

// Ops that move or rename elements and compute nothing. Any dtype.

// The same elements in row-major order under another shape; one extent may be -1 and is then what is left. No
// copy where the layout allows.
PLEXAURA_API Node reshape(Operand x, std::vector<std::int64_t> extents);

// [N, ...] -> [N, product of the rest].
PLEXAURA_API Node flatten(Operand x);

// Stretches extents of 1 and adds axes in front: numpy's broadcasting, as a value.
PLEXAURA_API Node broadcast_to(Operand x, Shape shape);

// Axis i of the result is axis axes[i] of x; axes names each axis once, negative ones count from the back.
PLEXAURA_API Node permute(Operand x, std::vector<std::int64_t> axes);

}  // namespace plexaura
