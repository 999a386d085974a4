#include "core/ops/cumsum.h"

#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"
#include "core/ops/lines.h"

namespace plexaura {

std::vector<TensorType> Cumsum::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  if (inputs[0].dtype == DType::boolean) throw RuleError("is defined for numbers, not for bool; use cast()");
  normalise_axis(options().axis, inputs[0].shape.rank());
  return {inputs[0]};
}

// An element is a term of the sums at all later indices and, unless the sums are exclusive, at its own index. So its
// gradient is the same kind of sum in the other direction.
std::vector<Node> Cumsum::vjp(const VjpRequest& request) const {
  CumsumOptions backwards = options();
  backwards.reverse = !backwards.reverse;
  return {cumsum(request.grad_outputs[0], backwards)};
}

Node cumsum(Operand x, CumsumOptions options) {
  options.axis = counted_from_front(options.axis, x.node().shape().rank());
  return apply(std::make_shared<Cumsum>(options), {x});
}

namespace {

// Sums one line of `count` elements along the axis. `step` is negative if the option reverse is set.
template <class T>
void sum_line(const T* src, T* dst, std::int64_t step, std::int64_t count, bool exclusive) {
  portable::Total<T> total = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto element = static_cast<portable::Total<T>>(src[i * step]);
    dst[i * step] = static_cast<T>(exclusive ? total : total + element);
    total += element;
  }
}

}  // namespace

void Cumsum::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const std::int64_t axis = normalise_axis(options().axis, result.shape().rank());
  const std::int64_t count = result.shape()[axis];
  const std::int64_t step = portable::stride_of(result.shape(), axis);
  const std::int64_t first = options().reverse ? (count - 1) * step : 0;
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    portable::parallel_for(result.elements() / count, count, [&](std::int64_t line) {
      const std::int64_t offset = line / step * step * count + line % step + first;
      sum_line(call.inputs[0].as<T>() + offset, result.as<T>() + offset, options().reverse ? -step : step,
               count, options().exclusive);
    });
  });
}

}  // namespace plexaura
