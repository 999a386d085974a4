#pragma once

#include "core/graph/graph.h"

namespace plexaura {

// Returns a batch of one sample as an input named "x", to try a model with it.
Node one_sample(Graph& graph, const Shape& sample_shape, DType dtype = DType::float32);

}  // namespace plexaura
