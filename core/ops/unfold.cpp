#include "core/ops/unfold.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/graph/graph.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/arrange.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/lines.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// The number of windows of an axis. Throws RuleError if not even one fits.
std::int64_t windows_in(std::int64_t extent, const UnfoldOptions& options) {
  if (options.size < 1 || options.step < 1 || options.dilation < 1)
    throw RuleError(fmt::format("size, step and dilation must be 1 or more, not {}, {} and {}", options.size,
                                options.step, options.dilation));
  // Compared by a division, since a product may overflow.
  if (extent < 1 || options.size - 1 > (extent - 1) / options.dilation)
    throw RuleError(
        fmt::format("a window of {} elements with dilation {} does not fit into an axis of {}; make "
                    "the window smaller or pad() the axis",
                    options.size, options.dilation, extent));
  return (extent - 1 - options.dilation * (options.size - 1)) / options.step + 1;
}

UnfoldOptions along_h(const Window2d& window) {
  return {.axis = 2, .size = window.kernel.h, .step = window.stride.h, .dilation = window.dilation.h};
}
UnfoldOptions along_w(const Window2d& window) {
  return {.axis = 3, .size = window.kernel.w, .step = window.stride.w, .dilation = window.dilation.w};
}

Size2d end_of(const Window2d& window) { return window.padding_end.value_or(window.padding); }

// The places of the window along H and W. A wrong window is an error of the caller's line.
Size2d places_of(std::string_view builder, const Operand& x, const Window2d& window, Size2d size) {
  try {
    window.check();
    return window.outputs(size);
  } catch (const RuleError& rule) {
    require_that(false, builder, {x}, rule.what());
    throw;
  }
}

}  // namespace

std::vector<TensorType> Unfold::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  const Shape& x = inputs[0].shape;
  const std::int64_t axis = front_axis(options().axis, x.rank());
  std::vector<std::int64_t> extents = x.extents();
  extents[static_cast<std::size_t>(axis)] = windows_in(x[axis], options());
  extents.push_back(options().size);
  return {{inputs[0].dtype, Shape(std::move(extents))}};
}

std::vector<Node> Unfold::vjp(const VjpRequest& request) const {
  return {fold(request.grad_outputs[0], request.inputs[0].shape()[options().axis], options())};
}

std::vector<TensorType> Fold::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  const Shape& windows = inputs[0].shape;
  if (inputs[0].dtype == DType::boolean) throw RuleError("is defined for numbers, not for bool; use cast()");
  const std::int64_t rank = std::max<std::int64_t>(windows.rank() - 1, 0);
  const std::int64_t axis = front_axis(options().axis, rank);
  const std::int64_t count = windows_in(options().extent, options());
  if (windows[axis] != count || windows[rank] != options().size)
    throw RuleError(
        fmt::format("an axis of {} has {} windows of {} elements: axis {} must have extent {}, and "
                    "the last axis {}",
                    options().extent, count, options().size, axis, count, options().size));
  std::vector<std::int64_t> extents(windows.begin(), windows.end() - 1);
  extents[static_cast<std::size_t>(axis)] = options().extent;
  return {{inputs[0].dtype, Shape(std::move(extents))}};
}

std::vector<Node> Fold::vjp(const VjpRequest& request) const {
  const UnfoldOptions& windows = options();
  return {unfold(request.grad_outputs[0], windows)};
}

Node unfold(Operand x, UnfoldOptions options) {
  options.axis = counted_from_front(options.axis, x.node().shape().rank());
  return apply(std::make_shared<Unfold>(options), {x});
}

Node fold(Operand windows, std::int64_t extent, UnfoldOptions options) {
  const DType dtype = windows.node().dtype();
  options.axis = counted_from_front(options.axis, windows.node().shape().rank() - 1);
  const auto op = std::make_shared<Fold>(FoldOptions{options, extent});
  if (!is_floating(dtype) || size_of(dtype) > 2) return apply(op, {windows});
  const Node sums = apply(op, {{cast(windows, DType::float32), windows.where()}});
  return cast({sums, windows.where()}, dtype);
}

Node im2col(Operand x, const Window2d& window) {
  const Shape shape = x.node().shape();
  require_that(shape.rank() == 4, "im2col", {x}, "needs the axes N, C, H and W; reshape the operand");
  const Size2d places = places_of("im2col", x, window, {shape[2], shape[3]});
  const Graph::WithOrigin guard = origin_of_caller(x);
  const Size2d end = end_of(window);
  const Node padded = pad(x.node(), {{2, window.padding.h, end.h}, {3, window.padding.w, end.w}});
  const Node windows = permute(unfold(unfold(padded, along_h(window)), along_w(window)), {0, 1, 4, 5, 2, 3});
  return reshape(windows, {shape[0], shape[1] * window.kernel.h * window.kernel.w, places.h * places.w});
}

Node col2im(Operand columns, Size2d size, const Window2d& window) {
  const Shape shape = columns.node().shape();
  const Size2d places = places_of("col2im", columns, window, size);
  const std::int64_t taps = window.kernel.h * window.kernel.w;
  require_that(
      shape.rank() == 3 && shape[1] % taps == 0 && shape[2] == places.h * places.w, "col2im", {columns},
      fmt::format("needs the shape [N, C {}, {}] for this window and size", taps, places.h * places.w));
  const Graph::WithOrigin guard = origin_of_caller(columns);
  const Node windows = permute(reshape(columns.node(), {shape[0], shape[1] / taps, window.kernel.h,
                                                        window.kernel.w, places.h, places.w}),
                               {0, 1, 4, 5, 2, 3});
  const Size2d end = end_of(window);
  const Node rows = fold(windows, size.w + window.padding.w + end.w, along_w(window));
  const Node padded = fold(rows, size.h + window.padding.h + end.h, along_h(window));
  const Node cut = slice(padded, {.axis = 2, .start = window.padding.h, .stop = window.padding.h + size.h});
  return slice(cut, {.axis = 3, .start = window.padding.w, .stop = window.padding.w + size.w});
}

namespace {

using namespace portable;

// Adds the windows of one line in their order.
template <class T>
void add_windows(const T* windows, T* line, const Lines& lines, std::int64_t count, const UnfoldOptions& of) {
  using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, Compute<T>>;
  for (std::int64_t i = 0; i < lines.extent; ++i) line[i * lines.behind] = T{};
  for (std::int64_t window = 0; window < count; ++window)
    for (std::int64_t i = 0; i < of.size; ++i) {
      T& sum = line[(window * of.step + i * of.dilation) * lines.behind];
      const T addend = windows[window * lines.behind * of.size + i];
      sum = static_cast<T>(static_cast<Sum>(sum) + static_cast<Sum>(addend));
    }
}

}  // namespace

void Unfold::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const Shape& x = call.inputs[0].shape();
  const std::int64_t axis = options().axis;
  StridedWalk<1> walk(result.elements());
  for (std::int64_t i = 0; i < x.rank(); ++i)
    walk.add_axis(result.shape()[i], {stride_of(x, i) * (i == axis ? std::min(options().step, x[axis]) : 1)});
  walk.add_axis(options().size, {stride_of(x, axis) * std::min(options().dilation, x[axis])});
  const std::int64_t step = walk.run_strides()[0];
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = result.as<T>();
    parallel_pieces(result.elements(), 1, [&](std::int64_t begin, std::int64_t end) {
      walk.runs(begin, end, [&](std::int64_t at, const auto& offsets, std::int64_t length) {
        copy_run(dst + at, 1, src + offsets[0], step, length);
      });
    });
  });
}

void Fold::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const Lines lines = Lines::along(result.shape(), options().axis);
  const std::int64_t count = call.inputs[0].shape()[options().axis];
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* windows = call.inputs[0].as<T>();
    parallel_for(lines.count(), count * options().size, [&](std::int64_t line) {
      const std::int64_t first =
          (line / lines.behind * count * lines.behind + line % lines.behind) * options().size;
      add_windows(windows + first, result.as<T>() + lines.first(line), lines, count, options());
    });
  });
}

}  // namespace plexaura
