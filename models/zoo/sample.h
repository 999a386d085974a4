#pragma once

#include "core/graph/graph.h"

namespace plexaura {

// A batch of one sample as an input named "x", for building a model on trial.
Node one_sample(Graph& graph, const Shape& sample_shape, DType dtype = DType::float32);

}  // namespace plexaura
