#include "onnx/ops/windows.h"

#include <algorithm>
#include <fmt/format.h>

#include "onnx/ops/table.h"

#include "core/ops/conv1d.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unfold.h"

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

// Determines the elements that are cut from both ends, or added at the end, if the extents of the result are given. Of
// an odd number one more is cut at the start, but for SAME_UPPER at the end.
void fit_to_outputs(const Integers& extents, const Integers& outputs, WindowAttributes& window,
                    Integers& added) {
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t whole =
        (extents[i] - 1) * window.strides[i] + window.dilations[i] * (window.kernel[i] - 1) + 1 + added[i];
    const std::int64_t cut = std::max<std::int64_t>(0, whole - outputs[i]);
    added[i] += std::max<std::int64_t>(0, outputs[i] - whole);
    window.before[i] = window.auto_pad == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
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

// One axis of an image that is the sum of windows.
struct FoldedAxis {
  std::int64_t extent = 0;  // without padding
  std::int64_t before = 0;  // padding at the start of the axis
  std::int64_t padded = 0;  // the extent with padding
  std::int64_t places = 0;  // number of places of the window
  UnfoldOptions window = {};
};

// Reads a list of numbers, one for each axis, which are `least` or more.
Integers checked_numbers(Integers numbers, std::size_t axes, std::string_view name, std::int64_t least) {
  require_axes(numbers, axes, name);
  require_within(numbers, name, least);
  return numbers;
}

std::vector<FoldedAxis> read_folded_axes(Call& call) {
  const Integers image = call.input_integers(1);
  const std::size_t count = image.size();
  const Integers ones(count, 1);
  require_within(image, "extents of the image", 1);
  const Integers block = checked_numbers(call.input_integers(2), count, "the shape of the block", 1);
  const Integers pads = checked_numbers(call.integers("pads", Integers(2 * count, 0)), 2 * count, "pads", 0);
  const Integers steps = checked_numbers(call.integers("strides", ones), count, "strides", 1);
  const Integers dilations = checked_numbers(call.integers("dilations", ones), count, "dilations", 1);
  std::vector<FoldedAxis> axes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t padded = image[i] + pads[i] + pads[count + i];
    const std::int64_t rest = padded - dilations[i] * (block[i] - 1) - 1;
    if (rest < 0)
      throw UserError(fmt::format("a window of {} elements, {} apart, does not fit {} elements", block[i],
                                  dilations[i], padded));
    axes.push_back({image[i],
                    pads[i],
                    padded,
                    rest / steps[i] + 1,
                    {.axis = static_cast<std::int64_t>(2 + i),
                     .size = block[i],
                     .step = steps[i],
                     .dilation = dilations[i]}});
  }
  return axes;
}

// Separates the axes of columns [N, C K1 K2 ..., L1 L2 ...]: [N, C, L1, L2, ..., K1, K2, ...].
Node separated_windows(const Node& columns, const std::vector<FoldedAxis>& axes) {
  std::int64_t places = 1;
  std::int64_t elements = 1;  // elements of a block
  for (const FoldedAxis& axis : axes) {
    if (places <= most_of_window) places *= axis.places;
    if (elements <= most_of_window) elements *= axis.window.size;
  }
  const Shape& shape = columns.shape();
  if (shape.rank() != 3 || shape[2] != places || shape[1] % elements != 0)
    throw UserError(fmt::format("columns {} do not fit {} elements of a block at {} places", to_string(shape),
                                elements, places));
  Integers extents{shape[0], shape[1] / elements};
  for (const FoldedAxis& axis : axes) extents.push_back(axis.window.size);
  for (const FoldedAxis& axis : axes) extents.push_back(axis.places);
  Integers order{0, 1};
  const auto count = static_cast<std::int64_t>(axes.size());
  for (std::int64_t i = 0; i < count; ++i) order.push_back(2 + count + i);
  for (std::int64_t i = 0; i < count; ++i) order.push_back(2 + i);
  return permute(reshape(columns, extents), order);
}

// Adds up overlapping windows: columns [N, C K1 K2 ..., L1 L2 ...] -> [N, C, image...].
std::vector<Node> columns_to_image(Call& call) {
  const std::vector<FoldedAxis> axes = read_folded_axes(call);
  Node image = separated_windows(call[0], axes);
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
    image = fold(image, axis->padded, axis->window);
  for (const FoldedAxis& axis : axes)
    image = slice(image, {.axis = axis.window.axis, .start = axis.before, .stop = axis.before + axis.extent});
  return {image};
}

constexpr Row rows_of_windows[] = {
    {"Col2Im", 18, columns_to_image},
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
