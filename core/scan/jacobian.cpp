#include "core/scan/jacobian.h"

#include <fmt/format.h>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/graph/print.h"
#include "core/ops/constants.h"
#include "core/ops/labels.h"
#include "core/ops/shape.h"
#include "core/scan/scan.h"

namespace plexaura {

namespace {

std::vector<std::int64_t> joined(const Shape& a, const Shape& b) {
  std::vector<std::int64_t> extents = a.extents();
  extents.insert(extents.end(), b.begin(), b.end());
  return extents;
}

}  // namespace

Node jacobian(const Node& output, const Node& wrt, std::source_location where) {
  Graph& graph = output.graph();
  if (wrt.dtype() != output.dtype())
    throw UserError(fmt::format("jacobian({}): the output is {} and {} is {}; cast() the output",
                                name_of(graph, output.id()), to_string(output.type()),
                                name_of(wrt.graph(), wrt.id()), to_string(wrt.type())));
  const Graph::WithOrigin guard(graph, graph.origin_of(where));
  const std::int64_t rows = output.shape().elements();
  const Shape shape(joined(output.shape(), wrt.shape()));
  const auto row = [&](const std::vector<Node>&, const std::vector<Node>& number) {
    const Node one = one_hot(reshape(number[0], {1}), rows, output.dtype());
    const Node cotangent = reshape(one, output.shape().extents());
    const Node grad = vjp({&output, 1}, {&cotangent, 1}, {&wrt, 1})[0];
    const Node zeros = graph.constant(Tensor(wrt.type()));
    return ScanStep{{}, {grad.is_empty() ? zeros : grad}};
  };
  return reshape(scan({iota(graph, rows, DType::int64, where)}, {}, row, {}, where).outputs[0],
                 shape.extents());
}

Node hessian(const Node& loss, const Node& wrt, std::source_location where) {
  const Node grad = gradients_or_empty(loss, {&wrt, 1})[0];
  if (grad.is_empty()) {
    const TensorType type{wrt.dtype(), Shape(joined(wrt.shape(), wrt.shape()))};
    return loss.graph().constant(Tensor(type), where);
  }
  return jacobian(grad, wrt, where);
}

}  // namespace plexaura
