// Pooling. The usual windows over images are the pools of core/ops. All others are composed: the windows of each
// axis are unfolded, and then reduced.

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "onnx/ops/table.h"
#include "onnx/ops/windows.h"

#include "core/ops/adaptive_pool.h"
#include "core/ops/arrange.h"
#include "core/ops/binary.h"
#include "core/ops/indexing.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"
#include "core/ops/unfold.h"

namespace plexaura::onnx {

namespace {

using Integers = std::vector<std::int64_t>;

// The elements of each window along a new last axis: [N, C, OH, OW, KH KW]. Elements outside of x are `beyond`.
// `more` elements are added at the end of each axis, beyond its padding.
Node windows_of(const Node& x, const WindowAttributes& window, const Integers& more, double beyond) {
  std::vector<AxisPadding> widths;
  for (std::size_t i = 0; i < window.kernel.size(); ++i)
    widths.push_back({static_cast<std::int64_t>(i) + 2, window.before[i], window.after[i] + more[i]});
  Node result = pad(x, widths, {.value = beyond});
  for (std::size_t i = 0; i < window.kernel.size(); ++i)
    result = unfold(result, {.axis = static_cast<std::int64_t>(i) + 2,
                             .size = window.kernel[i],
                             .step = window.strides[i],
                             .dilation = window.dilations[i]});
  const auto axes = static_cast<std::ptrdiff_t>(window.kernel.size());
  Integers extents(result.shape().begin(), result.shape().begin() + 2 + axes);
  std::int64_t elements = 1;
  for (const std::int64_t extent : window.kernel) elements *= extent;
  extents.push_back(elements);
  return reshape(result, extents);
}

// Returns the elements to add to the end of each axis, so that its last window is whole if the number of windows is
// rounded up. If the last window would begin after x, it is left out, and with it the padding that only it reads.
Integers round_up(const Node& x, WindowAttributes& window, bool ceil_mode) {
  Integers more(window.kernel.size(), 0);
  if (!ceil_mode) return more;
  for (std::size_t i = 0; i < more.size(); ++i) {
    const std::int64_t begun = x.shape()[static_cast<std::int64_t>(i) + 2] + window.before[i];
    const std::int64_t extent = begun + window.after[i];
    const std::int64_t size = window.dilations[i] * (window.kernel[i] - 1) + 1;
    std::int64_t last = 0;  // where the last window begins
    if (extent > size) last = (extent - size + window.strides[i] - 1) / window.strides[i] * window.strides[i];
    if (last >= begun) last -= window.strides[i];
    const std::int64_t missing = last + size - extent;
    more[i] = std::max<std::int64_t>(0, missing);
    window.after[i] = std::max<std::int64_t>(0, window.after[i] + std::min<std::int64_t>(0, missing));
  }
  return more;
}

bool is_plain_image(const WindowAttributes& window, bool ceil_mode) {
  const Integers ones(window.kernel.size(), 1);
  if (window.kernel.size() != 2 || ceil_mode || window.dilations != ones || !window.is_symmetric())
    return false;
  return 2 * window.before[0] <= window.kernel[0] && 2 * window.before[1] <= window.kernel[1];
}

// The place of each element in x, as the standard counts it: with `by_columns`, column by column within an image.
Node places_in(const Node& x, bool by_columns) {
  const Shape& shape = x.shape();
  const std::int64_t image = shape.elements() / std::max<std::int64_t>(1, shape[0] * shape[1]);
  Tensor places(TensorType{DType::int64, shape});
  const auto elements = places.as<std::int64_t>();
  const std::int64_t columns = shape[shape.rank() - 1];
  const std::int64_t rows = columns == 0 ? 0 : image / columns;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t within = at % image;
    elements[i] = by_columns ? at - within + within % columns * rows + within / columns : at;
  }
  return x.graph().constant(std::move(places));
}

std::vector<Node> max_of_windows(Call& call) {
  const Node x = call[0];
  WindowAttributes window = read_window(call, {});
  const bool ceil_mode = call.flag("ceil_mode", false);
  const bool by_columns = call.flag("storage_order", false);
  if (!call.wants(1) && is_floating(x.dtype()) && is_plain_image(window, ceil_mode) &&
      window.kernel[0] * window.kernel[1] <= 255)
    return {max_pool2d(x, {.kernel = size_2d(window.kernel),
                           .stride = size_2d(window.strides),
                           .padding = size_2d(window.before)})};
  const Integers more = round_up(x, window, ceil_mode);
  const double lowest = is_floating(x.dtype()) ? -std::numeric_limits<double>::infinity() : 0;
  if (!is_floating(x.dtype()) && x.dtype() != DType::uint8)
    throw UserError("it is supported for floating types and uint8 only");
  const Node windows = windows_of(x, window, more, lowest);
  if (!call.wants(1)) return {max(windows, -1)};
  const Node best = argmax(windows, -1, true);
  const Node places = windows_of(places_in(x, by_columns), window, more, 0);
  const Integers extents(windows.shape().begin(), windows.shape().end() - 1);
  return {reshape(take_along_axis(windows, best, -1), extents),
          reshape(take_along_axis(places, best, -1), extents)};
}

std::vector<Node> mean_of_windows(Call& call) {
  const Node x = call[0];
  WindowAttributes window = read_window(call, {});
  const bool ceil_mode = call.flag("ceil_mode", false);
  const bool counts_padding = call.flag("count_include_pad", false);
  if (is_plain_image(window, ceil_mode))
    return {avg_pool2d(x, {.kernel = size_2d(window.kernel),
                           .stride = size_2d(window.strides),
                           .padding = size_2d(window.before),
                           .count_include_pad = counts_padding})};
  const Integers more = round_up(x, window, ceil_mode);
  const Node sums = sum(windows_of(x, window, more, 0), -1);
  Integers one_image{1, 1};
  one_image.insert(one_image.end(), x.shape().begin() + 2, x.shape().end());
  const Node one = x.graph().constant(Tensor::scalar(1.0F));
  const Node ones = cast(broadcast_to(one, Shape(one_image)), x.dtype());
  if (!counts_padding) return {sums / sum(windows_of(ones, window, more, 0), -1)};
  WindowAttributes beyond = window;
  std::vector<AxisPadding> widths;
  for (std::size_t i = 0; i < window.kernel.size(); ++i) {
    widths.push_back({static_cast<std::int64_t>(i) + 2, window.before[i], window.after[i]});
    beyond.before[i] = beyond.after[i] = 0;
  }
  return {sums / sum(windows_of(pad(ones, widths, {.value = 1}), beyond, more, 0), -1)};
}

std::vector<Node> norm_of_windows(Call& call) {
  WindowAttributes window = read_window(call, {});
  const double p = static_cast<double>(call.integer("p", 2));
  const Integers more = round_up(call[0], window, call.flag("ceil_mode", false));
  return {pow(sum(pow(abs(windows_of(call[0], window, more, 0)), p), -1), 1 / p)};
}

// Global pools keep their axes, with the extent 1.
ReduceOptions over_image(const Node& x) {
  ReduceOptions options{.keepdims = true};
  for (std::int64_t axis = 2; axis < x.shape().rank(); ++axis) options.axes.push_back(axis);
  if (options.axes.empty())
    throw UserError(fmt::format("{} has no axes after N and C", to_string(x.shape())));
  return options;
}

std::vector<Node> global_mean(Call& call) { return {mean(call[0], over_image(call[0]))}; }
std::vector<Node> global_max(Call& call) { return {max(call[0], over_image(call[0]))}; }
std::vector<Node> global_norm(Call& call) {
  const double p = static_cast<double>(call.integer("p", 2));
  return {pow(sum(pow(abs(call[0]), p), over_image(call[0])), 1 / p)};
}

// Writes the elements to the places from which max pooling took them.
std::vector<Node> max_unpool(Call& call) {
  const Node x = call[0];
  const WindowAttributes window = read_window(call, {});
  Integers extents{x.shape()[0], x.shape()[1]};
  for (std::size_t i = 0; i < window.kernel.size(); ++i)
    extents.push_back((x.shape()[static_cast<std::int64_t>(i) + 2] - 1) * window.strides[i] +
                      window.kernel[i] - window.before[i] - window.after[i]);
  const Shape smallest(extents);
  const Shape result = call.has(2) ? Shape(call.input_integers(2)) : smallest;
  if (result.rank() != smallest.rank()) throw UserError("output_shape has another number of axes than x");
  const Node zero = cast(x.graph().constant(Tensor::scalar(0.0F)), x.dtype());
  const Node empty = broadcast_to(zero, Shape{smallest.elements()});
  Node filled = reshape(scatter(empty, reshape(call[1], {-1}), reshape(x, {-1}), 0), extents);
  std::vector<AxisPadding> widths;
  for (std::int64_t i = 0; i < result.rank(); ++i)
    if (result[i] != smallest[i]) widths.push_back({i, 0, result[i] - smallest[i]});
  return {widths.empty() ? filled : pad(filled, widths)};
}

constexpr Row rows_of_pools[] = {
    {"AveragePool", 1, mean_of_windows}, {"GlobalAveragePool", 1, global_mean},
    {"GlobalLpPool", 2, global_norm},    {"GlobalMaxPool", 1, global_max},
    {"LpPool", 2, norm_of_windows},      {"MaxPool", 1, max_of_windows},
    {"MaxUnpool", 9, max_unpool},
};

}  // namespace

std::span<const Row> pool_rows() { return rows_of_pools; }

}  // namespace plexaura::onnx
