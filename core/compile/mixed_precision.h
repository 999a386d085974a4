#pragma once

#include <span>

#include "core/compile/passes.h"

namespace plexaura {

// Returns a copy of a model's float32 graph which computes some ops in `narrow`: bfloat16 or float16. OpTraits::precision
// of each op decides. Call it before gradients(), so that gradients have the dtype of the values that they belong to. A
// cast is added where the dtype changes, and each value is cast only once. Parameters and constants stay float32, and are
// cast where a narrow op reads them. An op with Precision::follows that reads only parameters and constants computes in
// float32 too. Inputs, buffers, updates and roots keep their dtypes. An op keeps its dtype if an operand has a floating
// dtype other than float32, or is a constant that overflows in `narrow`.
PLEXAURA_API PassGraph in_mixed_precision(const Graph& graph, std::span<const Value> roots, DType narrow);

}  // namespace plexaura
