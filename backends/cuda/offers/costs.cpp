#include "backends/cuda/offers/costs.h"

#include "backends/regions/matmul_regions.h"
#include "core/ops/matmul.h"

namespace plexaura::cuda {

namespace {

// Returns the number of operations. Each element of y is a sum of as many products as one output channel has
// weights.
double operations_of_convolution(const Shape& y, const Shape& weights) {
  return weights[0] == 0 ? 0
                         : 2 * static_cast<double>(y.elements()) * static_cast<double>(weights.elements()) /
                               static_cast<double>(weights[0]);
}

}  // namespace

double operations_of(const RegionQuery& query) {
  const auto input = [&](std::size_t i) -> const Shape& { return query.type(query.region.inputs[i]).shape; };
  const Shape& result = query.type(query.region.outputs[0]).shape;
  const std::string& kind = query.region.kind;
  if (kind == "conv2d") return operations_of_convolution(result, input(1));
  if (kind == "conv2d_input_grad") return operations_of_convolution(input(1), input(0));
  if (kind == "conv2d_weight_grad") return operations_of_convolution(input(1), result);
  if (!is_matmul(query)) return 0;
  const bool transpose = op_cast<MatMul>(query.op()).options().transpose_a;
  const auto inner = input(0)[input(0).rank() - (transpose ? 2 : 1)];
  return 2 * static_cast<double>(result.elements()) * static_cast<double>(inner);
}

double bytes_of(const RegionQuery& query) {
  double bytes = 0;
  for (const auto* values : {&query.region.inputs, &query.region.outputs})
    for (const Value value : *values) bytes += static_cast<double>(query.type(value).bytes());
  return bytes;
}

}  // namespace plexaura::cuda
