#include "models/zoo/sample.h"

namespace plexaura {

Node one_sample(Graph& graph, const Shape& sample_shape, DType dtype) {
  std::vector<std::int64_t> extents{1};
  extents.insert(extents.end(), sample_shape.begin(), sample_shape.end());
  return graph.input("x", {dtype, Shape(std::move(extents))});
}

}  // namespace plexaura
