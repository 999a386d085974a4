#include "onnx/ops/windows.h"

#include <algorithm>
#include <fmt/format.h>

#include "onnx/ops/table.h"

#include "core/ops/conv1d.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/conv_transpose.h"

namespace plexaura::onnx {

namespace {

using Integers = std::vector<std::int64_t>;

// Products of two numbers of a window, or of one and an extent of x, fit into 64 bits.
constexpr std::int64_t most_of_window = std::int64_t{1} << 30;

void require_within(const Integers& numbers, std::string_view name, std::int64_t least) {
  for (const std::int64_t number : numbers)
    if (number < least || number > most_of_window)
      throw UserError(fmt::format("{} must be from {} to {}, not {}", name, least, most_of_window, number));
}

Integers spatial_extents(const Node& x) {
  if (x.shape().rank() < 3)
    throw UserError(
        fmt::format("x must have the axes N, C and at least one more, not {}", to_string(x.shape())));
  Integers extents(x.shape().begin() + 2, x.shape().end());
  require_within(extents, "the extents of x after N and C", 0);
  return extents;
}

void require_axes(const Integers& numbers, std::size_t axes, std::string_view name) {
  if (numbers.size() != axes)
    throw UserError(fmt::format("{} has {} numbers, but x needs {}", name, numbers.size(), axes));
}

void pad_to_same(const Integers& extents, WindowAttributes& window) {
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t outputs = (extents[i] + window.strides[i] - 1) / window.strides[i];
    const std::int64_t covered =
        (outputs - 1) * window.strides[i] + window.dilations[i] * (window.kernel[i] - 1) + 1;
    const std::int64_t missing = std::max<std::int64_t>(0, covered - extents[i]);
    window.before[i] = window.auto_pad == "SAME_LOWER" ? missing - missing / 2 : missing / 2;
    window.after[i] = missing - window.before[i];
  }
}

Size3d size_3d(const Integers& numbers) { return {numbers[0], numbers[1], numbers[2]}; }

// Calls a convolution with or without a bias.
template <class Function, class Options>
Node with_bias(Function&& function, const Node& x, const Node& weights, const Node& bias,
               const Options& options) {
  return bias.is_empty() ? function(x, weights, options) : function(x, weights, bias, options);
}

#define PLEXAURA_OVERLOADED(function) [](auto&&... arguments) { return function(arguments...); }

Integers weight_extents(const Node& x, const Node& weights) {
  const Shape& shape = weights.shape();
  if (shape.rank() != x.shape().rank())
    throw UserError(fmt::format("the weights {} do not fit {}", to_string(shape), to_string(x.shape())));
  return {shape.begin() + 2, shape.end()};
}

std::vector<Node> convolution(Call& call) { return {convolve(call, call[0], call[1], call.optional(2))}; }

// Determines the elements that are cut from both ends, or added at the end, if the extents of the result are given.
void fit_to_outputs(const Integers& extents, const Integers& outputs, WindowAttributes& window,
                    Integers& added) {
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t whole =
        (extents[i] - 1) * window.strides[i] + window.dilations[i] * (window.kernel[i] - 1) + 1 + added[i];
    const std::int64_t cut = std::max<std::int64_t>(0, whole - outputs[i]);
    added[i] += std::max<std::int64_t>(0, outputs[i] - whole);
    window.before[i] = window.auto_pad == "SAME_LOWER" ? cut - cut / 2 : cut / 2;
    window.after[i] = cut - window.before[i];
  }
}

std::vector<Node> transposed_convolution(Call& call) {
  const Integers extents = spatial_extents(call[0]);
  const std::size_t axes = extents.size();
  WindowAttributes window = read_window(call, weight_extents(call[0], call[1]), true);
  const std::int64_t groups = call.integer("group", 1);
  const Node bias = call.optional(2);
  Integers added = call.integers("output_padding", Integers(axes, 0));
  require_axes(added, axes, "output_padding");
  require_within(added, "a number of output_padding", 0);
  Integers outputs = call.integers("output_shape");
  if (outputs.size() == axes + 2) outputs.erase(outputs.begin(), outputs.begin() + 2);
  if (outputs.empty() && window.auto_pad.starts_with("SAME"))
    for (std::size_t i = 0; i < axes; ++i) outputs.push_back(extents[i] * window.strides[i]);
  if (!outputs.empty()) {
    require_axes(outputs, axes, "output_shape");
    require_within(outputs, "a number of output_shape", 1);
    fit_to_outputs(extents, outputs, window, added);
  }
  if (axes == 1)
    return {with_bias(PLEXAURA_OVERLOADED(conv_transpose1d), call[0], call[1], bias,
                      ConvTranspose1dOptions{window.strides[0], window.before[0], window.dilations[0], groups,
                                             added[0], window.after[0]})};
  if (axes == 2)
    return {with_bias(
        PLEXAURA_OVERLOADED(conv_transpose2d), call[0], call[1], bias,
        ConvTranspose2dOptions{size_2d(window.strides), size_2d(window.before), size_2d(window.dilations),
                               groups, size_2d(added), size_2d(window.after)})};
  if (axes == 3)
    return {with_bias(
        PLEXAURA_OVERLOADED(conv_transpose3d), call[0], call[1], bias,
        ConvTranspose3dOptions{size_3d(window.strides), size_3d(window.before), size_3d(window.dilations),
                               groups, size_3d(added), size_3d(window.after)})};
  throw UserError("convolutions have one, two or three axes after N and C");
}

constexpr Row rows_of_windows[] = {
    {"Conv", 1, convolution},
    {"ConvTranspose", 1, transposed_convolution},
};

}  // namespace

WindowAttributes read_window(Call& call, Integers kernel, bool is_transposed) {
  const Integers extents = spatial_extents(call[0]);
  const std::size_t axes = extents.size();
  WindowAttributes window;
  window.kernel = call.integers("kernel_shape", kernel);
  window.strides = call.integers("strides", Integers(axes, 1));
  window.dilations = call.integers("dilations", Integers(axes, 1));
  window.auto_pad = call.text("auto_pad", "NOTSET");
  const Integers pads = call.integers("pads", Integers(2 * axes, 0));
  require_axes(window.kernel, axes, "kernel_shape");
  require_axes(window.strides, axes, "strides");
  require_axes(window.dilations, axes, "dilations");
  if (!kernel.empty() && kernel != window.kernel)
    throw UserError("kernel_shape differs from the extents of the weights");
  if (pads.size() != 2 * axes)
    throw UserError(fmt::format("pads has {} numbers, but x needs {}", pads.size(), 2 * axes));
  require_within(window.kernel, "an extent of the kernel", 1);
  require_within(window.strides, "a stride", 1);
  require_within(window.dilations, "a dilation", 1);
  require_within(pads, "a number of pads", 0);
  window.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
  window.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(axes), pads.end());
  if (window.auto_pad == "VALID") {
    window.before.assign(axes, 0);
    window.after.assign(axes, 0);
  } else if (window.auto_pad.starts_with("SAME_")) {
    if (!is_transposed) pad_to_same(extents, window);
  } else if (window.auto_pad != "NOTSET" && !window.auto_pad.empty()) {
    throw UserError(
        fmt::format("auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not '{}'", window.auto_pad));
  }
  return window;
}

Node convolve(Call& call, const Node& x, const Node& weights, const Node& bias) {
  const WindowAttributes window = read_window(call, weight_extents(x, weights));
  const std::int64_t groups = call.integer("group", 1);
  if (window.kernel.size() == 1)
    return with_bias(
        PLEXAURA_OVERLOADED(conv1d), x, weights, bias,
        Conv1dOptions{window.strides[0], window.before[0], window.dilations[0], groups, window.after[0]});
  if (window.kernel.size() == 2)
    return with_bias(PLEXAURA_OVERLOADED(conv2d), x, weights, bias,
                     Conv2dOptions{size_2d(window.strides), size_2d(window.before), size_2d(window.dilations),
                                   groups, size_2d(window.after)});
  if (window.kernel.size() == 3)
    return with_bias(PLEXAURA_OVERLOADED(conv3d), x, weights, bias,
                     Conv3dOptions{size_3d(window.strides), size_3d(window.before), size_3d(window.dilations),
                                   groups, size_3d(window.after)});
  throw UserError("convolutions have one, two or three axes after N and C");
}

#undef PLEXAURA_OVERLOADED

std::span<const Row> window_rows() { return rows_of_windows; }

}  // namespace plexaura::onnx
