#pragma once

#include "models/zoo/model.h"

namespace plexaura {

// Returns a batch of one sample as an input named "x", to try a model with it.
Node one_sample(Graph& graph, const Shape& sample_shape, DType dtype = DType::float32);
// The same for a model, with samples of `dtype`, or, of a language model, of int64.
Node one_sample(Graph& graph, const ModelInfo& model, DType dtype = DType::float32);

}  // namespace plexaura
