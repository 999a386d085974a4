// Convolutions and pooling.

#include "onnx/export/export_table.h"

namespace plexaura::onnx {

namespace {

using Integers = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

Integers extents_after_channels(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

Integers joined(Integers before, const Integers& after) {
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

Attributes convolution_attributes(const ExportCall& call, const Shape& weights) {
  const Integers before = call.integers("padding");
  const Integers after = call.has_option("padding_end") ? call.integers("padding_end") : before;
  return {{"kernel_shape", extents_after_channels(weights)},
          {"strides", call.integers("stride")},
          {"dilations", call.integers("dilation")},
          {"pads", joined(before, after)},
          {"group", call.integer("groups")}};
}

Names convolution_of(ExportCall& call, const ExportRow&) {
  return {call.add("Conv", call.inputs(), convolution_attributes(call, call.input_type(1).shape))};
}

// The gradient of a convolution by its input is a transposed convolution. output_padding is the number of elements
// at the end of the result that the smallest result does not have.
Names transposed_convolution_of(ExportCall& call, const ExportRow&) {
  const Shape& weights = call.input_type(0).shape;
  const Integers x = extents_after_channels(call.input_type(1).shape);
  const Integers kernel = extents_after_channels(weights);
  const Integers stride = call.integers("stride");
  const Integers dilation = call.integers("dilation");
  Attributes attributes = convolution_attributes(call, weights);
  const Integers before = call.integers("padding");
  const Integers after = call.has_option("padding_end") ? call.integers("padding_end") : before;
  Integers added = extents_after_channels(call.type().shape);
  for (std::size_t i = 0; i < added.size(); ++i)
    added[i] -= (x[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 - before[i] - after[i];
  attributes.emplace_back("output_padding", added);
  return {call.add("ConvTranspose", {call[1], call[0]}, std::move(attributes))};
}

struct PoolWindow {
  Integers kernel;
  Integers stride;
  Integers before;  // padding at the beginning of each axis
  Integers after;   // padding at the end: as at the beginning, or more if a window reaches further
};

// Adds explicit padding where windows reach beyond the padding, since runtimes differ in how they round the number of
// windows up.
PoolWindow pool_window(const ExportCall& call) {
  const Integers input = extents_after_channels(call.input_type(0).shape);
  const Integers output = extents_after_channels(call.type().shape);
  PoolWindow window{call.integers("kernel"), call.integers("stride"), call.integers("padding"), {}};
  if (call.has_option("output")) {
    for (std::size_t i = 0; i < output.size(); ++i) {
      window.kernel[i] = window.stride[i] = input[i] / output[i];
      window.before[i] = 0;
    }
  }
  for (std::size_t i = 0; i < output.size(); ++i) {
    const std::int64_t reach =
        (output[i] - 1) * window.stride[i] + window.kernel[i] - input[i] - window.before[i];
    window.after.push_back(std::max(reach, window.before[i]));
  }
  return window;
}

Attributes pool_attributes(const PoolWindow& window) {
  return {{"kernel_shape", window.kernel},
          {"strides", window.stride},
          {"pads", joined(window.before, window.after)}};
}

// True for adaptive pooling to extents of which one does not divide that of the input.
bool has_unequal_windows(const ExportCall& call) {
  if (!call.has_option("output")) return false;
  const Integers input = extents_after_channels(call.input_type(0).shape);
  const Integers output = extents_after_channels(call.type().shape);
  for (std::size_t i = 0; i < output.size(); ++i)
    if (input[i] % output[i] != 0) return true;
  return false;
}

// Reduces each window along one axis of a value with this shape, joins the results, and changes the shape to theirs.
std::string pooled_along(ExportCall& call, const std::string& x, Shape& shape, std::int64_t axis) {
  const std::int64_t input = shape[axis];
  const std::int64_t output = call.type().shape[axis];
  const std::string_view reduce = call.op().starts_with("max") ? "ReduceMax" : "ReduceMean";
  std::vector<std::int64_t> extents = shape.extents();
  const auto with_extent = [&](std::int64_t extent) {
    extents[static_cast<std::size_t>(axis)] = extent;
    return call.with_shape(Shape(extents));
  };
  const std::string axes = call.integers({axis});
  Names windows;
  for (std::int64_t i = 0; i < output; ++i) {
    const std::int64_t start = i * input / output;
    const std::int64_t stop = ((i + 1) * input + output - 1) / output;
    const std::string window = call.add("Slice", {x, call.integers({start}), call.integers({stop}), axes},
                                        with_extent(stop - start));
    windows.push_back(call.add(reduce, {window, axes}, with_extent(1)));
  }
  shape = with_extent(output).shape;
  return call.add("Concat", std::move(windows), call.with_shape(shape), {{"axis", axis}});
}

// The mean of a window is the mean along one axis after another, because all rows of a window have one length. The same
// holds for the largest element.
Names pool_of_unequal_windows(ExportCall& call) {
  std::string value = call[0];
  Shape shape = call.input_type(0).shape;
  for (std::int64_t axis = 2; axis < shape.rank(); ++axis)
    if (shape[axis] != call.type().shape[axis]) value = pooled_along(call, value, shape, axis);
  return {value};
}

Names max_pool_of(ExportCall& call, const ExportRow&) {
  if (has_unequal_windows(call)) return pool_of_unequal_windows(call);
  return {call.add("MaxPool", {call[0]}, pool_attributes(pool_window(call)))};
}

// Makes the padding of both sides a part of the image, so that only elements beyond it are padding.
Names mean_pool_of_padded(ExportCall& call, PoolWindow window) {
  Integers extents = call.input_type(0).shape.extents();
  Integers widths(2 * extents.size(), 0);
  for (std::size_t i = 0; i < window.before.size(); ++i) {
    extents[i + 2] += 2 * window.before[i];
    widths[i + 2] = widths[extents.size() + i + 2] = window.before[i];
    window.after[i] -= window.before[i];
    window.before[i] = 0;
  }
  const std::string padded =
      call.add("Pad", {call[0], call.integers(widths), call.number(0)}, call.with_shape(Shape(extents)));
  return {call.add("AveragePool", {padded}, pool_attributes(window))};
}

// A mean that counts the padding counts the padding of both sides, but not the elements of the last window beyond that
// padding.
Names mean_pool_of(ExportCall& call, const ExportRow&) {
  if (has_unequal_windows(call)) return pool_of_unequal_windows(call);
  const PoolWindow window = pool_window(call);
  const bool counts_padding = !call.has_option("count_include_pad") && !call.has_option("output");
  if (counts_padding && window.after != window.before) return mean_pool_of_padded(call, window);
  Attributes attributes = pool_attributes(window);
  if (counts_padding) attributes.emplace_back("count_include_pad", std::int64_t{1});
  return {call.add("AveragePool", {call[0]}, std::move(attributes))};
}

constexpr ExportRow window_export[] = {
    {"avg_pool2d", mean_pool_of, "AveragePool"},
    {"avg_pool3d", mean_pool_of, "AveragePool"},
    {"conv2d", convolution_of, "Conv"},
    {"conv2d_input_grad", transposed_convolution_of, "ConvTranspose"},
    {"conv3d", convolution_of, "Conv"},
    {"conv3d_input_grad", transposed_convolution_of, "ConvTranspose"},
    {"max_pool2d", max_pool_of, "MaxPool"},
    {"max_pool3d", max_pool_of, "MaxPool"},
};

}  // namespace

std::span<const ExportRow> exported_windows() { return window_export; }

}  // namespace plexaura::onnx
