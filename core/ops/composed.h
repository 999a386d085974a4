#pragma once

#include "core/graph/graph.h"

namespace plexaura {

// Functions for builders that compose other ops.

// Returns the place of the builder's caller: its line, and the module that is being called.
inline Origin place_of_caller(const Operand& x) { return x.node().graph().origin_of(x.where()); }

// While the result lives, new nodes have the place of the builder's caller as their origin.
inline Graph::WithOrigin origin_of_caller(const Operand& x) { return {x.node().graph(), place_of_caller(x)}; }

// The dtype in which sums and functions of x are computed: float64 for float64, and float32 for all other dtypes.
inline DType wide_dtype_of(const Operand& x) {
  return x.node().dtype() == DType::float64 ? DType::float64 : DType::float32;
}

}  // namespace plexaura
