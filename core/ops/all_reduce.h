#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// The sum of x over all ranks, on every rank. All ranks must run the op equally often and in the same order.
// x is float64, float32 or int64. The loss of a distributed run is the sum of the ranks' losses, so the
// gradient of x is the sum of the ranks' gradients of the result.
//
// The op is not in ops.def, since it needs no kernel: the VM runs it at a host point, with
// VmOptions::collective. A backend whose library sums over ranks by itself may offer a kernel.
PLEXAURA_API Node all_reduce_sum(Operand x);

}  // namespace plexaura
