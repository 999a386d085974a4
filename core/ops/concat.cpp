#include "core/ops/concat.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/loops/loops.h"
#include "core/ops/elementwise.h"
#include "core/ops/slice.h"

namespace plexaura {

std::vector<TensorType> Concat::infer(std::span<const TensorType> inputs) const {
  if (inputs.empty()) throw RuleError("needs at least one part");
  const TensorType& first = inputs[0];
  const std::int64_t axis = normalise_axis(options().axis, first.shape.rank());
  std::vector<std::int64_t> extents = first.shape.extents();
  std::int64_t& joined = extents[static_cast<std::size_t>(axis)];
  joined = 0;
  for (const TensorType& part : inputs) {
    require_same_dtype(first, part);
    if (part.shape.rank() != first.shape.rank())
      throw RuleError("the parts must have equally many axes; reshape() some of them");
    for (std::int64_t other = 0; other < first.shape.rank(); ++other)
      if (other != axis && part.shape[other] != first.shape[other])
        throw RuleError(fmt::format(
            "the parts must be equal along every axis but {}; one has {} elements along axis {} and "
            "another {}",
            axis, first.shape[other], other, part.shape[other]));
    joined += part.shape[axis];
  }
  return {{first.dtype, Shape(std::move(extents))}};
}

std::vector<Node> Concat::vjp(const VjpRequest& request) const {
  std::vector<Node> grads(request.inputs.size());
  std::int64_t start = 0;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Shape& part = request.inputs[i].shape();
    const std::int64_t axis = normalise_axis(options().axis, part.rank());
    const std::int64_t stop = start + part[axis];
    if (request.wanted[i])
      grads[i] = slice(request.grad_outputs[0], {.axis = axis, .start = start, .stop = stop});
    start = stop;
  }
  return grads;
}

std::vector<Operand> operands_of(const std::vector<Node>& nodes, std::source_location where) {
  std::vector<Operand> operands;
  for (const Node& node : nodes) operands.emplace_back(node, where);
  return operands;
}

Node concat(std::vector<Operand> parts, std::int64_t axis) {
  return apply_all(std::make_shared<Concat>(ConcatOptions{axis}), parts)[0];
}

void Concat::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const std::int64_t axis = normalise_axis(options().axis, result.shape().rank());
  const auto element = static_cast<std::int64_t>(size_of(result.dtype()));
  const std::int64_t behind = portable::stride_of(result.shape(), axis) * element;
  const std::int64_t row = result.shape()[axis] * behind;
  const std::int64_t rows = result.elements() * element / row;
  std::int64_t first = 0;
  for (const HostView& part : call.inputs) {
    const std::int64_t bytes = part.shape()[axis] * behind;
    portable::parallel_for(rows, bytes, [&](std::int64_t i) {
      std::copy_n(part.data + i * bytes, bytes, result.data + i * row + first);
    });
    first += bytes;
  }
}

}  // namespace plexaura
