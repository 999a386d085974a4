#include "core/ops/elementwise.h"

#include <fmt/format.h>

namespace plexaura {

std::vector<TensorType> UnaryOp::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  require_floating(inputs[0]);
  return {inputs[0]};
}

std::vector<Node> UnaryOp::vjp(const VjpRequest& request) const {
  return {vjp_(request.inputs[0], request.outputs[0], request.grad_outputs[0])};
}

void require_inputs(std::span<const TensorType> inputs, std::size_t count) {
  if (inputs.size() != count)
    throw RuleError(fmt::format("takes {} inputs and was given {}", count, inputs.size()));
}

void require_floating(const TensorType& type) {
  if (!is_floating(type.dtype))
    throw RuleError(
        fmt::format("is defined for floating types, not for {}; use cast()", name_of(type.dtype)));
}

void require_same_dtype(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype)
    throw RuleError(
        fmt::format("both operands must have one dtype (here {} and {}); use cast() on one of them",
                    name_of(a.dtype), name_of(b.dtype)));
}

TensorType broadcast_types(const TensorType& a, const TensorType& b) {
  require_same_dtype(a, b);
  return {a.dtype, broadcast(a.shape, b.shape)};
}

}  // namespace plexaura
