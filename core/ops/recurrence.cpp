#include "core/ops/recurrence.h"

#include "core/graph/graph.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/lines.h"
#include "core/ops/slice.h"

namespace plexaura {

namespace {

// Moves the elements one place along the axis, towards the end or the start. The free place becomes 0.
Node moved_by_one(const Node& x, std::int64_t axis, bool to_end) {
  const SliceOptions all_but_first{.axis = axis, .start = 1};
  const SliceOptions all_but_last{.axis = axis, .stop = -1};
  return slice_grad(slice(x, to_end ? all_but_last : all_but_first), x.shape()[axis],
                    to_end ? all_but_first : all_but_last);
}

}  // namespace

std::vector<TensorType> LinearRecurrence::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  if (inputs[0] != inputs[1])
    throw RuleError("both operands must have one type and shape; cast or broadcast one");
  if (inputs[0].dtype == DType::boolean) throw RuleError("is defined for numbers, not for bool; use cast()");
  front_axis(options().axis, inputs[0].shape.rank());
  return {inputs[0]};
}

// The gradient r of b is a recurrence, too, in the other direction: r[i] = grad[i] + a[i + 1] r[i + 1].
std::vector<Node> LinearRecurrence::vjp(const VjpRequest& request) const {
  const auto [axis, reverse] = options();
  const Node next_a = moved_by_one(request.inputs[0], axis, reverse);
  const Node grad_b = linear_recurrence(next_a, request.grad_outputs[0], {.axis = axis, .reverse = !reverse});
  return {grad_b * moved_by_one(request.outputs[0], axis, !reverse), grad_b};
}

Node linear_recurrence(Operand a, Operand b, RecurrenceOptions options) {
  options.axis = counted_from_front(options.axis, a.node().shape().rank());
  return apply(std::make_shared<LinearRecurrence>(options), {a, b});
}

Node cumprod(Operand x, std::int64_t axis) {
  const Node node = x.node();
  axis = axis_of("cumprod", x, axis, node.shape().rank());
  require_that(node.dtype() != DType::boolean, "cumprod", {x},
               "is defined for numbers, not for bool; use cast()");
  const Graph::WithOrigin guard(node.graph(), node.graph().origin_of(x.where()));
  const SliceOptions first{.axis = axis, .stop = 1};
  const Node start = slice_grad(slice(node, first), node.shape()[axis], first);
  return linear_recurrence(node, start, {.axis = axis});
}

namespace {

using namespace portable;

template <class T>
void recur_along(const T* a, const T* b, T* y, std::int64_t step, std::int64_t count) {
  using State = Total<T>;
  State state{};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto addend = static_cast<State>(b[i * step]);
    state = i == 0 ? addend : static_cast<State>(a[i * step]) * state + addend;
    y[i * step] = static_cast<T>(state);
  }
}

}  // namespace

void LinearRecurrence::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const Lines lines = Lines::along(result.shape(), options().axis);
  const bool reverse = options().reverse;
  const std::int64_t start = reverse ? (lines.extent - 1) * lines.behind : 0;
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    parallel_for(lines.count(), lines.extent * 2, [&](std::int64_t line) {
      const std::int64_t first = lines.first(line) + start;
      recur_along(call.inputs[0].as<T>() + first, call.inputs[1].as<T>() + first, result.as<T>() + first,
                  reverse ? -lines.behind : lines.behind, lines.extent);
    });
  });
}

}  // namespace plexaura
