#include "backends/regions/matmul_regions.h"

#include <utility>

#include "backends/regions/region_match.h"
#include "core/ops/matmul.h"

namespace plexaura {

namespace {

bool is_row_of(const Shape& value, const Shape& product) {
  return value.rank() > 0 && value.rank() <= product.rank() && value[value.rank() - 1] == value.elements() &&
         value.elements() == product[product.rank() - 1];
}

// Returns the shape [..., M, K] as the shape of one matrix with many rows.
Shape as_one_matrix(const Shape& shape) {
  const std::int64_t columns = shape[shape.rank() - 1];
  return {shape.elements() / columns, columns};
}

}  // namespace

std::vector<Region> match_matmul_with_bias(const Graph& graph, NodeId add, const Uses& uses) {
  const std::vector<Value>& operands = graph.record(add).inputs;
  for (std::size_t side = 0; side < 2; ++side) {
    const Value product = operands[side];
    const Value bias = operands[1 - side];
    if (!is_op(graph, product.node, "matmul") || !uses.only_read_by(product, add) || bias == product)
      continue;
    if (!is_row_of(graph.type(bias).shape, graph.type(product).shape)) continue;
    std::vector<Value> inputs = graph.record(product.node).inputs;
    inputs.push_back(bias);
    return {{matmul_with_bias, {product.node, add}, std::move(inputs), {{add, 0}}}};
  }
  return {};
}

MatMulShapes matmul_shapes(const RegionQuery& query) {
  const Region& region = query.region;
  MatMulShapes shapes{query.type(region.inputs[0]).shape, query.type(region.inputs[1]).shape,
                      query.type(region.outputs[0]).shape};
  if (shapes.b.rank() == 2 && shapes.a.rank() > 2 && !op_cast<MatMul>(query.op()).options().transpose_a) {
    shapes.a = as_one_matrix(shapes.a);
    shapes.product = as_one_matrix(shapes.product);
  }
  return shapes;
}

}  // namespace plexaura
