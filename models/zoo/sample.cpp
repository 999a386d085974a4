#include "models/zoo/sample.h"

namespace plexaura {

Node one_sample(Graph& graph, const Shape& sample_shape) {
  std::vector<std::int64_t> extents{1};
  extents.insert(extents.end(), sample_shape.begin(), sample_shape.end());
  return graph.input("x", {DType::float32, Shape(std::move(extents))});
}

}  // namespace plexaura
