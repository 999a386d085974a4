#pragma once

#include "core/export.h"
#include "core/graph/op.h"

namespace plexaura {

// The sum of x over all ranks, on every rank. Every rank must run it equally often and in the same order.
// float64, float32, int64. The loss of a distributed run is the sum of the ranks' losses, so its gradient is
// the sum of the ranks' cotangents.
//
// It does not stand in ops.def: it has no kernel, the VM runs it at a host point through the Collective that
// it was given.
PLEXAURA_API Node all_reduce_sum(Operand x);

}  // namespace plexaura
