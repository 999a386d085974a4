#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// The sum of x over all ranks, on every rank. Every rank must run it equally often and in the same order.
// float64, float32, int64. The loss of a distributed run is the sum of the ranks' losses, so its gradient is
// the sum of the ranks' cotangents.
//
// It does not stand in ops.def, for it needs no kernel: the VM runs it at a host point through the Collective that
// it was given. A backend whose library sums over ranks by itself may offer one.
PLEXAURA_API Node all_reduce_sum(Operand x);

}  // namespace plexaura
