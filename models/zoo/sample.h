#pragma once

#include "models/zoo/model.h"

namespace plexaura {

// Returns a batch of one sample as an input named "x", to try a model with it.
Node one_sample(Graph& graph, const Shape& sample_shape, DType dtype = DType::float32);
// Returns a batch of one sample of a model. Samples have the type `dtype`, but int64 for a language model.
Node one_sample(Graph& graph, const ModelInfo& model, DType dtype = DType::float32);

}  // namespace plexaura
