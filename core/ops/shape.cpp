#include "core/ops/shape.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"

namespace plexaura {

namespace {

std::vector<std::int64_t> resolved(std::vector<std::int64_t> extents, std::int64_t elements) {
  const auto open = std::ranges::find(extents, -1);
  if (open == extents.end()) return extents;
  const std::int64_t known =
      -std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  if (known > 0 && elements % known == 0) *open = elements / known;
  return extents;
}

}  // namespace

std::vector<TensorType> Reshape::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  const std::int64_t elements = inputs[0].shape.elements();
  const std::vector<std::int64_t> extents = resolved(options().extents, elements);
  const bool valid = std::ranges::none_of(extents, [](std::int64_t extent) { return extent < 0; });
  if (!valid || Shape(extents).elements() != elements)
    throw RuleError(fmt::format(
        "{} elements do not fill the new shape; the product of the extents must be equal, and at most "
        "one of them -1",
        elements));
  return {{inputs[0].dtype, Shape(extents)}};
}

std::vector<Node> Reshape::vjp(const VjpRequest& request) const {
  return {reshape(request.grad_outputs[0], request.inputs[0].shape().extents())};
}

std::vector<TensorType> BroadcastTo::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  if (broadcast(inputs[0].shape, options().shape) != options().shape)
    throw RuleError(fmt::format("does not broadcast to {}; the result's extents must be its own",
                                to_string(options().shape)));
  return {{inputs[0].dtype, options().shape}};
}

std::vector<Node> BroadcastTo::vjp(const VjpRequest& request) const { return {request.grad_outputs[0]}; }

std::vector<TensorType> Permute::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  std::vector<std::int64_t> sorted = options().axes;
  std::ranges::sort(sorted);
  std::vector<std::int64_t> expected(static_cast<std::size_t>(inputs[0].shape.rank()));
  std::iota(expected.begin(), expected.end(), 0);
  if (sorted != expected) throw RuleError("axes must name each axis of the value once");
  std::vector<std::int64_t> extents;
  for (const std::int64_t axis : options().axes) extents.push_back(inputs[0].shape[axis]);
  return {{inputs[0].dtype, Shape(std::move(extents))}};
}

std::vector<Node> Permute::vjp(const VjpRequest& request) const {
  std::vector<std::int64_t> inverse(options().axes.size());
  for (std::size_t i = 0; i < options().axes.size(); ++i)
    inverse[static_cast<std::size_t>(options().axes[i])] = static_cast<std::int64_t>(i);
  return {permute(request.grad_outputs[0], inverse)};
}

Node reshape(Operand x, std::vector<std::int64_t> extents) {
  return apply(std::make_shared<Reshape>(ReshapeOptions{std::move(extents)}), {x});
}

Node flatten(Operand x) {
  const Shape& shape = x.node().shape();
  const std::int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  std::int64_t columns = 1;
  for (std::int64_t axis = 1; axis < shape.rank(); ++axis) columns *= shape[axis];
  return reshape(x, {rows, columns});
}

Node broadcast_to(Operand x, Shape shape) {
  return apply(std::make_shared<BroadcastTo>(BroadcastToOptions{std::move(shape)}), {x});
}

Node permute(Operand x, std::vector<std::int64_t> axes) {
  const std::int64_t rank = x.node().shape().rank();
  for (std::int64_t& axis : axes)
    if (axis < 0) axis += rank;
  return apply(std::make_shared<Permute>(PermuteOptions{std::move(axes)}), {x});
}

namespace {

using namespace portable;

// Copies elements along a walk whose operand 0 is the source.
void copy(const HostCall& call, const StridedWalk<1>& walk) {
  const std::int64_t step = walk.run_strides()[0];
  dispatch(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = call.outputs[0].as<T>();
    parallel_pieces(walk.elements(), 1, [&](std::int64_t begin, std::int64_t end) {
      walk.runs(begin, end, [&](std::int64_t first, const auto& offsets, std::int64_t length) {
        copy_run(dst + first, 1, src + offsets[0], step, length);
      });
    });
  });
}

}  // namespace

void Reshape::compute(const HostCall& call) const { copy_bytes(call.inputs[0], call.outputs[0]); }

void BroadcastTo::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  copy(call, broadcast_walk(call.outputs[0].shape(), call.inputs[0].shape()));
}

void Permute::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  const auto& axes = options().axes;
  const Shape& from = call.inputs[0].shape();
  StridedWalk<1> walk(call.outputs[0].elements());
  for (const std::int64_t axis : axes) walk.add_axis(from[axis], {stride_of(from, axis)});
  copy(call, walk);
}

}  // namespace plexaura
