#include "core/ops/gather.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/indices.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// Returns `shape` with the axes [axis, axis + count) replaced by `others`.
Shape with_axes(const Shape& shape, std::int64_t axis, std::int64_t count,
                const std::vector<std::int64_t>& others) {
  std::vector<std::int64_t> extents = shape.extents();
  const auto at = extents.begin() + axis;
  extents.insert(extents.erase(at, at + count), others.begin(), others.end());
  return Shape(std::move(extents));
}

}  // namespace

std::vector<TensorType> Gather::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_indices(inputs[1]);
  const std::int64_t axis = normalise_axis(options().axis, inputs[0].shape.rank());
  return {{inputs[0].dtype, with_axes(inputs[0].shape, axis, 1, inputs[1].shape.extents())}};
}

// Gradients of 16-bit floats are added up in float32.
std::vector<Node> Gather::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const DType wide = x.dtype() == DType::float64 ? DType::float64 : DType::float32;
  const std::int64_t axis = normalise_axis(options().axis, x.shape().rank());
  const Node grad =
      gather_grad(cast(request.grad_outputs[0], wide), request.inputs[1], x.shape()[axis], {axis});
  return {cast(grad, x.dtype()), Node()};
}

std::vector<TensorType> GatherGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_floating(inputs[0]);
  require_indices(inputs[1]);
  const Shape& grad_out = inputs[0].shape;
  const auto& indices = inputs[1].shape.extents();
  const std::int64_t rank = grad_out.rank() - inputs[1].shape.rank() + 1;
  const std::int64_t axis = options().axis;
  const bool fits = axis >= 0 && axis < rank && options().extent >= 0 &&
                    std::equal(indices.begin(), indices.end(), grad_out.extents().begin() + axis);
  if (!fits)
    throw RuleError(
        "the gradient must have the axes of the indices in the place of the axis that was gathered from");
  return {{inputs[0].dtype,
           with_axes(grad_out, axis, static_cast<std::int64_t>(indices.size()), {options().extent})}};
}

std::vector<Node> GatherGrad::vjp(const VjpRequest& request) const {
  return {gather(request.grad_outputs[0], request.inputs[1], {options().axis}), Node()};
}

Node gather(Operand x, Operand indices, GatherOptions options) {
  return apply(std::make_shared<Gather>(options), {x, indices});
}

Node gather_grad(Operand grad_out, Operand indices, std::int64_t extent, GatherOptions options) {
  const std::int64_t rank = grad_out.node().shape().rank() - indices.node().shape().rank() + 1;
  const std::int64_t axis = options.axis < 0 ? options.axis + rank : options.axis;
  return apply(std::make_shared<GatherGrad>(GatherGradOptions{axis, extent}), {grad_out, indices});
}

Node embedding(Operand weights, Operand indices, std::optional<std::int64_t> padding) {
  const TensorType& type = weights.node().type();
  const TensorType& index_type = indices.node().type();
  const auto refuse = [&](const std::string& rule) {
    throw UserError(fmt::format("{}: embedding({}, {}): {}", to_string(place_of_caller(weights)),
                                to_string(type), to_string(index_type), rule));
  };
  if (type.dtype == DType::int64 && index_type.dtype != DType::int64)
    refuse("the table comes first, then the indices; swap them");
  if (type.shape.rank() != 2) refuse("the weights must have two axes, a row for each index");
  if (index_type.dtype != DType::int64)
    refuse(fmt::format("the indices must be int64, not {}; cast() them", name_of(index_type.dtype)));
  const Node rows = gather(weights, indices);
  if (!padding) return rows;
  const std::int64_t count = type.shape[0];
  if (*padding < -count || *padding >= count)
    refuse(fmt::format("the padding must be a row from {} to {}, not {}", -count, count - 1, *padding));
  const auto at = indices.where();
  const Node is_padding = eq(indices, {*padding < 0 ? *padding + count : *padding, at});
  std::vector<std::int64_t> columns = index_type.shape.extents();
  columns.push_back(1);
  return where({reshape({is_padding, at}, std::move(columns)), at}, {stop_gradient({rows, at}), at},
               {rows, at});
}

namespace {

using namespace portable;

// `count` indices of an axis of a value. The value is viewed as [before, extent, behind], and the gathered
// value as [before, count, behind].
struct Rows {
  const std::int64_t* indices;
  std::int64_t count;
  std::int64_t before;
  std::int64_t extent;
  std::int64_t behind;
};

Rows rows_of(const HostView& indices, const Shape& whole, std::int64_t axis) {
  const std::int64_t behind = stride_of(whole, axis);
  std::int64_t before = 1;
  for (std::int64_t i = 0; i < axis; ++i) before *= whole[i];
  return {indices.as<std::int64_t>(), indices.elements(), before, whole[axis], behind};
}

}  // namespace

void Gather::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  const Shape& x = call.inputs[0].shape();
  const Rows rows = rows_of(call.inputs[1], x, normalise_axis(options().axis, x.rank()));
  require_inside(call.inputs[1], rows.extent);
  dispatch(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = call.outputs[0].as<T>();
    constexpr std::int64_t piece = 256;
    const std::int64_t pieces = (rows.count + piece - 1) / piece;
    parallel_for(rows.before * pieces, piece * rows.behind, [&](std::int64_t work) {
      const std::int64_t outer = work / pieces;
      const std::int64_t begin = work % pieces * piece;
      const T* from = src + outer * rows.extent * rows.behind;
      T* to = dst + outer * rows.count * rows.behind;
      for (std::int64_t i = begin; i < std::min(rows.count, begin + piece); ++i)
        if (rows.behind == 1)
          to[i] = from[rows.indices[i]];
        else
          std::copy_n(from + rows.indices[i] * rows.behind, rows.behind, to + i * rows.behind);
    });
  });
}

// Each thread has columns of its own, and adds to them in the order of the indices.
void GatherGrad::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const Rows rows = rows_of(call.inputs[1], result.shape(), options().axis);
  require_inside(call.inputs[1], rows.extent);
  constexpr std::int64_t width = 64;
  const std::int64_t pieces = (rows.behind + width - 1) / width;
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = result.as<T>();
    parallel_for(rows.before * pieces, (rows.count + rows.extent) * width, [&](std::int64_t work) {
      const std::int64_t outer = work / pieces;
      const std::int64_t begin = work % pieces * width;
      const std::int64_t length = std::min(width, rows.behind - begin);
      T* to = dst + outer * rows.extent * rows.behind + begin;
      const T* from = src + outer * rows.count * rows.behind + begin;
      if (length == rows.behind)
        std::fill_n(to, rows.extent * length, T(0));
      else
        for (std::int64_t row = 0; row < rows.extent; ++row)
          std::fill_n(to + row * rows.behind, length, T(0));
      for (std::int64_t i = 0; i < rows.count; ++i) {
        T* sum = to + rows.indices[i] * rows.behind;
        const T* addend = from + i * rows.behind;
        for (std::int64_t k = 0; k < length; ++k)
          sum[k] = T(static_cast<Compute<T>>(sum[k]) + static_cast<Compute<T>>(addend[k]));
      }
    });
  });
}

}  // namespace plexaura
