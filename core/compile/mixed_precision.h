#pragma once

#include <span>

#include "core/compile/passes.h"

namespace plexaura {

// A model's graph of float32 as a graph of its own that computes in `narrow`, bfloat16 or float16, what its ops say
// of themselves (OpTraits::precision). It comes before gradients(), which then are in the dtype of what they belong
// to. Casts stand where the dtype changes, one for each value; what is computed of parameters and constants alone
// stays in float32 and is cast for its readers. Inputs, buffers, updates and roots keep their dtypes, and so do ops
// with an operand of another floating type than float32, or with a constant that `narrow` is too small for.
PLEXAURA_API PassGraph in_mixed_precision(const Graph& graph, std::span<const Value> roots, DType narrow);

}  // namespace plexaura
