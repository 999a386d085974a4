#include "core/ops/softmax.h"

#include <cmath>

#include "core/loops/largest.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/lines.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

Node along_axis(SoftmaxOp::Kind kind, Operand x, std::int64_t axis) {
  axis = counted_from_front(axis, x.node().shape().rank());
  return apply(std::make_shared<SoftmaxOp>(kind, SoftmaxOptions{axis}), {x});
}

}  // namespace

std::vector<TensorType> SoftmaxOp::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  require_floating(inputs[0]);
  normalise_axis(options().axis, inputs[0].shape.rank());
  return {inputs[0]};
}

std::vector<Node> SoftmaxOp::vjp(const VjpRequest& request) const {
  const Node& y = request.outputs[0];
  const Node& grad = request.grad_outputs[0];
  const ReduceOptions along{.axes = {options().axis}, .keepdims = true};
  if (kind_ == Kind::softmax) return {y * (grad - sum(grad * y, along))};
  return {grad - exp(y) * sum(grad, along)};
}

Node softmax(Operand x, std::int64_t axis) { return along_axis(SoftmaxOp::Kind::softmax, x, axis); }
Node log_softmax(Operand x, std::int64_t axis) { return along_axis(SoftmaxOp::Kind::log_softmax, x, axis); }

namespace {

using namespace portable;

constexpr std::int64_t cost_of_exp = 20;

struct Spread {
  double largest;
  double total;  // sum of e^(x - largest)
};

template <class T>
Spread spread_of(const T* src, std::int64_t step, std::int64_t count) {
  const double largest = largest_of(src, count, step);
  double total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += std::exp(static_cast<double>(src[i * step]) - largest);
  return {largest, total};
}

// Calls row(src, dst, step, count) for each line along the axis.
template <class T, class Row>
void for_each_line(const HostCall& call, std::int64_t axis, const Row& row) {
  const Shape& shape = call.outputs[0].shape();
  if (call.outputs[0].data == nullptr || shape.elements() == 0) return;
  const std::int64_t count = shape[axis];
  const std::int64_t step = stride_of(shape, axis);
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  parallel_for(shape.elements() / count, count * cost_of_exp, [&](std::int64_t line) {
    const std::int64_t offset = line / step * step * count + line % step;
    row(src + offset, dst + offset, step, count);
  });
}

void compute_softmax(const HostCall& call, std::int64_t axis) {
  dispatch_floating(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    for_each_line<T>(call, axis, [](const T* src, T* dst, std::int64_t step, std::int64_t count) {
      const Spread spread = spread_of(src, step, count);
      for (std::int64_t i = 0; i < count; ++i)
        dst[i * step] = T(std::exp(static_cast<double>(src[i * step]) - spread.largest) / spread.total);
    });
  });
}

void compute_log_softmax(const HostCall& call, std::int64_t axis) {
  dispatch_floating(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    for_each_line<T>(call, axis, [](const T* src, T* dst, std::int64_t step, std::int64_t count) {
      const Spread spread = spread_of(src, step, count);
      const double log_total = std::log(spread.total);
      for (std::int64_t i = 0; i < count; ++i)
        dst[i * step] = T(static_cast<double>(src[i * step]) - spread.largest - log_total);
    });
  });
}

}  // namespace

void SoftmaxOp::compute(const HostCall& call) const {
  const std::int64_t axis = normalise_axis(options().axis, call.outputs[0].shape().rank());
  kind_ == Kind::softmax ? compute_softmax(call, axis) : compute_log_softmax(call, axis);
}

}  // namespace plexaura
