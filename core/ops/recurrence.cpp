#include "core/ops/recurrence.h"

#include <algorithm>
#include <array>

#include "core/graph/graph.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
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
  const Graph::WithOrigin guard = origin_of_caller(x);
  const SliceOptions first{.axis = axis, .stop = 1};
  const Node start = slice_grad(slice(node, first), node.shape()[axis], first);
  return linear_recurrence(node, start, {.axis = axis});
}

namespace {

using namespace portable;

constexpr std::int64_t most_lines = 32;

// Computes `width` (at most `most`) neighbouring lines in one pass, so that it reads memory in order.
template <std::int64_t most, class T>
void recur_along(const T* a, const T* b, T* y, std::int64_t step, std::int64_t count, std::int64_t width) {
  using State = Total<T>;
  std::array<State, most> states{};
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t line = 0; line < (most == 1 ? 1 : width); ++line) {
      const std::int64_t place = i * step + line;
      State& state = states[static_cast<std::size_t>(line)];
      const auto addend = static_cast<State>(b[place]);
      state = i == 0 ? addend : static_cast<State>(a[place]) * state + addend;
      y[place] = static_cast<T>(state);
    }
}

}  // namespace

void LinearRecurrence::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const Lines lines = Lines::along(result.shape(), options().axis);
  const bool reverse = options().reverse;
  const std::int64_t start = reverse ? (lines.extent - 1) * lines.behind : 0;
  const std::int64_t groups =
      // Groups of lines for each index of the axes before `axis`.
      (lines.behind + most_lines - 1) / most_lines;
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    parallel_for(lines.before * groups, lines.extent * 2 * std::min(lines.behind, most_lines),
                 [&](std::int64_t group) {
                   const std::int64_t behind = group % groups * most_lines;
                   const std::int64_t first = lines.first(group / groups * lines.behind + behind) + start;
                   const auto recur = lines.behind == 1 ? recur_along<1, T> : recur_along<most_lines, T>;
                   recur(call.inputs[0].as<T>() + first, call.inputs[1].as<T>() + first,
                         result.as<T>() + first, reverse ? -lines.behind : lines.behind, lines.extent,
                         std::min(most_lines, lines.behind - behind));
                 });
  });
}

}  // namespace plexaura
