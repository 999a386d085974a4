// Resize and Upsample. Each axis is resized by a matrix of weights, which is known when the graph is built.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "onnx/ops/table.h"

#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/gather.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

struct ResizeRules {
  std::string mode = "nearest";
  std::string transform = "half_pixel";
  std::string rounding = "round_prefer_floor";
  double cubic = -0.75;
  bool excludes_outside = false;
  double beyond = 0;  // the value of elements outside, for tf_crop_and_resize
};

// One axis, from `from` to `to` elements.
struct ResizedAxis {
  std::int64_t from = 1;
  std::int64_t to = 1;
  double scale = 1;
  double start = 0;  // of the region that tf_crop_and_resize takes, as a part of the axis
  double end = 1;
};

// The place in the old axis of element i of the new one.
double old_place(std::int64_t i, const ResizedAxis& axis, const std::string& transform) {
  const auto at = static_cast<double>(i);
  const auto from = static_cast<double>(axis.from);
  const auto to = static_cast<double>(axis.to);
  if (transform == "half_pixel") return (at + 0.5) / axis.scale - 0.5;
  if (transform == "pytorch_half_pixel") return axis.to > 1 ? (at + 0.5) / axis.scale - 0.5 : 0;
  if (transform == "align_corners") return axis.to > 1 ? at * (from - 1) / (axis.scale * from - 1) : 0;
  if (transform == "asymmetric") return at / axis.scale;
  if (transform == "tf_half_pixel_for_nn") return (at + 0.5) / axis.scale;
  if (transform == "tf_crop_and_resize")
    return axis.to > 1 ? axis.start * (from - 1) + at * (axis.end - axis.start) * (from - 1) / (to - 1)
                       : (axis.start + axis.end) * (from - 1) / 2;
  throw UserError(fmt::format("the coordinate_transformation_mode '{}' is not supported", transform));
}

std::int64_t nearest_place(double place, const std::string& rounding) {
  if (rounding == "round_prefer_floor") return static_cast<std::int64_t>(std::ceil(place - 0.5));
  if (rounding == "round_prefer_ceil") return static_cast<std::int64_t>(std::floor(place + 0.5));
  if (rounding == "floor") return static_cast<std::int64_t>(std::floor(place));
  if (rounding == "ceil") return static_cast<std::int64_t>(std::ceil(place));
  throw UserError(fmt::format("the nearest_mode '{}' is not supported", rounding));
}

// The weights of the neighbours from `first` on, of a place that is `rest` after the floor of it.
std::vector<double> neighbour_weights(double rest, const ResizeRules& rules) {
  if (rules.mode == "linear") return {1 - rest, rest};
  const double a = rules.cubic;
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + rest), near(rest), near(1 - rest), far(2 - rest)};
}

// Adds the weights of one element of the new axis to a row of the matrix.
void add_weights(double place, const ResizedAxis& axis, const ResizeRules& rules, std::span<double> row) {
  const double floor = std::floor(place);
  std::vector<double> weights{1};
  std::int64_t first = 0;
  if (rules.mode == "nearest") {
    first = nearest_place(place, rules.rounding);
  } else {
    weights = neighbour_weights(place - floor, rules);
    first = static_cast<std::int64_t>(floor) - (rules.mode == "cubic" ? 1 : 0);
  }
  double total = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const std::int64_t at = first + static_cast<std::int64_t>(k);
    const bool is_outside = at < 0 || at >= axis.from;
    if (rules.excludes_outside && is_outside) continue;
    row[static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, axis.from - 1))] += weights[k];
    total += weights[k];
  }
  if (rules.excludes_outside)
    for (double& weight : row) weight /= total;
}

// [to, from] and, for each new element, true if it is outside of the old axis.
struct AxisWeights {
  Tensor matrix;
  std::vector<bool> outside;
};

AxisWeights weights_of(const ResizedAxis& axis, const ResizeRules& rules) {
  AxisWeights made{Tensor(TensorType{DType::float64, {axis.to, axis.from}}), {}};
  const auto elements = made.matrix.as<double>();
  const auto width = static_cast<std::size_t>(axis.from);
  for (std::int64_t i = 0; i < axis.to; ++i) {
    const double place = old_place(i, axis, rules.transform);
    made.outside.push_back(rules.transform == "tf_crop_and_resize" &&
                           (place < 0 || place > static_cast<double>(axis.from - 1)));
    add_weights(place, axis, rules, elements.subspan(static_cast<std::size_t>(i) * width, width));
  }
  return made;
}

Node resize_axis(const Node& x, std::int64_t number, const ResizedAxis& axis, const ResizeRules& rules) {
  if (axis.from == axis.to && axis.scale == 1 && rules.transform != "tf_crop_and_resize") return x;
  if (axis.from < 1) throw UserError("an axis without elements cannot be resized");
  const AxisWeights weights = weights_of(axis, rules);
  Graph& graph = x.graph();
  Node result;
  if (rules.mode == "nearest") {
    const auto elements = weights.matrix.as<double>();
    std::vector<std::int64_t> places;
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (elements[i] != 0) places.push_back(static_cast<std::int64_t>(i) % axis.from);
    result = gather(x, graph.constant(Tensor::of({axis.to}, places)), {.axis = number});
  } else {
    const DType wide = x.dtype() == DType::float64 ? DType::float64 : DType::float32;
    const Node matrix = graph.constant(weights.matrix.cast(wide));
    const std::int64_t last = x.shape().rank() - 1;
    const Node rows = transpose(cast(x, wide), number, last);
    const Node product = rows.shape().rank() == 1
                             ? squeeze(matmul(unsqueeze(rows, 0), matrix, {.transpose_b = true}), 0)
                             : matmul(rows, matrix, {.transpose_b = true});
    result = cast(transpose(product, number, last), x.dtype());
  }
  if (std::ranges::find(weights.outside, true) == weights.outside.end()) return result;
  std::vector<std::int64_t> along(static_cast<std::size_t>(x.shape().rank()), 1);
  along[static_cast<std::size_t>(number)] = axis.to;
  Tensor mask(TensorType{DType::boolean, Shape(along)});
  std::ranges::copy(weights.outside, mask.as<bool>().begin());
  return where(graph.constant(std::move(mask)), rules.beyond, result);
}

std::vector<ResizedAxis> axes_by_scales(const Shape& shape, const std::vector<double>& scales) {
  if (static_cast<std::int64_t>(scales.size()) != shape.rank())
    throw UserError(fmt::format("{} scales do not fit {}", scales.size(), to_string(shape)));
  std::vector<ResizedAxis> axes;
  for (std::int64_t i = 0; i < shape.rank(); ++i) {
    const double scale = scales[static_cast<std::size_t>(i)];
    const double to = std::floor(static_cast<double>(shape[i]) * scale);
    if (!(scale > 0) || !(to < 1e9)) throw UserError(fmt::format("the scale {} is impossible", scale));
    axes.push_back({.from = shape[i], .to = static_cast<std::int64_t>(to), .scale = scale});
  }
  return axes;
}

std::vector<ResizedAxis> axes_by_sizes(const Shape& shape, const std::vector<std::int64_t>& sizes) {
  if (static_cast<std::int64_t>(sizes.size()) != shape.rank())
    throw UserError(fmt::format("{} sizes do not fit {}", sizes.size(), to_string(shape)));
  std::vector<ResizedAxis> axes;
  for (std::int64_t i = 0; i < shape.rank(); ++i) {
    const std::int64_t to = sizes[static_cast<std::size_t>(i)];
    if (to < 1) throw UserError(fmt::format("the size {} is impossible", to));
    axes.push_back(
        {.from = shape[i], .to = to, .scale = static_cast<double>(to) / static_cast<double>(shape[i])});
  }
  return axes;
}

std::vector<Node> resize_axes(const Node& x, const std::vector<ResizedAxis>& axes, const ResizeRules& rules) {
  if (rules.mode != "nearest" && rules.mode != "linear" && rules.mode != "cubic")
    throw UserError(fmt::format("mode must be nearest, linear or cubic, not '{}'", rules.mode));
  Node result = x;
  for (std::size_t i = 0; i < axes.size(); ++i)
    result = resize_axis(result, static_cast<std::int64_t>(i), axes[i], rules);
  return {result};
}

bool is_given(const Call& call, std::size_t i) { return call.has(i) && call[i].shape().elements() > 0; }

std::vector<Node> resize(Call& call) {
  const Shape& shape = call[0].shape();
  ResizeRules rules{.mode = call.text("mode", "nearest"),
                    .transform = call.text("coordinate_transformation_mode", "half_pixel"),
                    .rounding = call.text("nearest_mode", "round_prefer_floor"),
                    .cubic = call.real("cubic_coeff_a", -0.75),
                    .excludes_outside = call.flag("exclude_outside", false),
                    .beyond = call.real("extrapolation_value", 0)};
  std::vector<ResizedAxis> axes = is_given(call, 3) ? axes_by_sizes(shape, call.input_integers(3))
                                                    : axes_by_scales(shape, call.value(2).to_doubles());
  if (rules.transform == "tf_crop_and_resize") {
    const std::vector<double> region = call.value(1).to_doubles();
    if (region.size() != 2 * axes.size()) throw UserError("roi needs two numbers for each axis");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      axes[i].start = region[i];
      axes[i].end = region[i + axes.size()];
    }
  }
  return resize_axes(call[0], axes, rules);
}

// In version 10, Resize is what Upsample was.
ResizeRules rules_of_upsample(Call& call) {
  return {.mode = call.text("mode", "nearest"), .transform = "asymmetric", .rounding = "floor"};
}

std::vector<Node> upsample(Call& call) {
  return resize_axes(call[0], axes_by_scales(call[0].shape(), call.value(1).to_doubles()),
                     rules_of_upsample(call));
}

std::vector<Node> upsample_by_attribute(Call& call) {
  const std::vector<float> scales = call.reals("scales");
  return resize_axes(call[0], axes_by_scales(call[0].shape(), {scales.begin(), scales.end()}),
                     rules_of_upsample(call));
}

constexpr Row rows_of_resize[] = {
    {"Resize", 10, upsample},
    {"Resize", 11, resize},
    {"Upsample", 7, upsample_by_attribute},
    {"Upsample", 9, upsample},
};

}  // namespace

std::span<const Row> resize_rows() { return rows_of_resize; }

}  // namespace plexaura::onnx
