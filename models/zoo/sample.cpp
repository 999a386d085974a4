#include "models/zoo/sample.h"

#include "training/data/sample_source.h"

namespace plexaura {

Node one_sample(Graph& graph, const Shape& sample_shape, DType dtype) {
  return graph.input("x", {dtype, batched(1, sample_shape)});
}

Node one_sample(Graph& graph, const ModelInfo& model, DType dtype) {
  return one_sample(graph, model.sample_shape, model.task == Task::language_model ? DType::int64 : dtype);
}

}  // namespace plexaura
