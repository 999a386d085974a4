// Resize and Upsample. Each element of a resized axis is a weighted sum of a few elements of the old one.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "onnx/ops/table.h"

#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/gather.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

struct ResizeRules {
  std::string mode = "nearest";
  std::string transform = "half_pixel";
  std::string rounding = "round_prefer_floor";
  double cubic = -0.75;
  bool excludes_outside = false;
  bool smooths = false;  // an axis that shrinks takes the mean over a wider neighbourhood (antialias)
  double beyond = 0;     // the value of elements outside, for tf_crop_and_resize
};

// One axis, from `from` to `to` elements.
struct ResizedAxis {
  std::int64_t from = 1;
  std::int64_t to = 1;
  double scale = 1;
  double start = 0;  // start of the region that tf_crop_and_resize takes, as a part of the axis
  double end = 1;
};

// The place in the old axis of element i of the new one.
double old_place(std::int64_t i, const ResizedAxis& axis, const std::string& transform) {
  const auto at = static_cast<double>(i);
  const auto from = static_cast<double>(axis.from);
  const auto to = static_cast<double>(axis.to);
  if (transform == "half_pixel") return (at + 0.5) / axis.scale - 0.5;
  if (transform == "half_pixel_symmetric")
    return from / 2 * (1 - to / (axis.scale * from)) + (at + 0.5) / axis.scale - 0.5;
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

// The weight of a neighbour at this distance.
double neighbour_weight(double distance, const ResizeRules& rules) {
  const double d = std::abs(distance);
  if (rules.mode == "linear") return std::max(0.0, 1 - d);
  const double a = rules.cubic;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// The old elements on which a new element depends: `reach` of them on each side. Their distances are multiplied by
// `scale`, which is below 1 with antialias, before they become weights.
struct Neighbourhood {
  std::int64_t reach = 1;
  double scale = 1;
};

Neighbourhood neighbourhood_of(const ResizedAxis& axis, const ResizeRules& rules) {
  constexpr double most = 128;
  const double least = rules.mode == "cubic" ? 2 : 1;
  const double scale = rules.smooths ? std::min(axis.scale, 1.0) : 1;
  if (least / scale > most)
    throw UserError(fmt::format("with antialias an axis shrinks to no less than {} of its extent, not to {}",
                                least / most, scale));
  return {static_cast<std::int64_t>(std::ceil(least / scale)), scale};
}

// One axis of the result as a sum over its taps: result[i] = sum over k of weights[k][i] x[places[k][i]]. Each new
// element has one tap (nearest), two (linear) or four (cubic), and more with antialias.
struct AxisTaps {
  std::vector<std::vector<std::int64_t>> places;
  std::vector<std::vector<double>> weights;
  std::vector<bool> outside;  // for each new element, true if it is outside of the old axis
};

// Sets the taps of one element of the new axis. A tap outside of the old axis takes the element at its end.
void set_taps(AxisTaps& taps, std::size_t element, double place, const ResizedAxis& axis,
              const ResizeRules& rules) {
  std::vector<double> weights(taps.places.size(), 1.0);
  std::int64_t first = 0;
  if (rules.mode == "nearest") {
    first = nearest_place(place, rules.rounding);
  } else {
    const Neighbourhood near = neighbourhood_of(axis, rules);
    first = static_cast<std::int64_t>(std::floor(place)) - near.reach + 1;
    for (std::size_t k = 0; k < weights.size(); ++k)
      weights[k] = neighbour_weight(
          (static_cast<double>(first + static_cast<std::int64_t>(k)) - place) * near.scale, rules);
  }
  double total = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const std::int64_t at = first + static_cast<std::int64_t>(k);
    if (rules.excludes_outside && (at < 0 || at >= axis.from)) weights[k] = 0;
    total += weights[k];
    taps.places[k][element] = std::clamp<std::int64_t>(at, 0, axis.from - 1);
  }
  const bool is_scaled = (rules.excludes_outside || rules.smooths) && total != 0;
  for (std::size_t k = 0; k < weights.size(); ++k)
    taps.weights[k][element] = is_scaled ? weights[k] / total : weights[k];
}

AxisTaps taps_of(const ResizedAxis& axis, const ResizeRules& rules) {
  const auto count =
      rules.mode == "nearest" ? 1 : static_cast<std::size_t>(2 * neighbourhood_of(axis, rules).reach);
  const auto to = static_cast<std::size_t>(axis.to);
  AxisTaps taps{
      std::vector(count, std::vector<std::int64_t>(to)), std::vector(count, std::vector<double>(to)), {}};
  for (std::size_t i = 0; i < to; ++i) {
    const double place = old_place(static_cast<std::int64_t>(i), axis, rules.transform);
    const double most = static_cast<double>(axis.from - 1);
    taps.outside.push_back(rules.transform == "tf_crop_and_resize" && (place < 0 || place > most));
    // A place far outside has the taps of one just outside, and fits into an integer.
    const double beyond = 4 * static_cast<double>(count);
    set_taps(taps, i, std::clamp(place, -beyond, most + beyond), axis, rules);
  }
  return taps;
}

Node weighted_taps(const Node& x, std::int64_t number, const ResizedAxis& axis, const AxisTaps& taps) {
  const DType wide = wide_dtype_of(x);
  std::vector<std::int64_t> along(static_cast<std::size_t>(x.shape().rank()), 1);
  along[static_cast<std::size_t>(number)] = axis.to;
  Graph& graph = x.graph();
  Node result;
  for (std::size_t k = 0; k < taps.places.size(); ++k) {
    const Node tap =
        gather(cast(x, wide), graph.constant(Tensor::of({axis.to}, taps.places[k])), {.axis = number});
    const Node weights = graph.constant(Tensor::of(Shape(along), taps.weights[k]).cast(wide));
    result = k == 0 ? tap * weights : result + tap * weights;
  }
  return cast(result, x.dtype());
}

Node resize_axis(const Node& x, std::int64_t number, const ResizedAxis& axis, const ResizeRules& rules) {
  if (axis.from == axis.to && axis.scale == 1 && rules.transform != "tf_crop_and_resize") return x;
  if (axis.from < 1) throw UserError("an axis without elements cannot be resized");
  const AxisTaps taps = taps_of(axis, rules);
  Graph& graph = x.graph();
  const Node result = rules.mode == "nearest"
                          ? gather(x, graph.constant(Tensor::of({axis.to}, taps.places[0])), {.axis = number})
                          : weighted_taps(x, number, axis, taps);
  if (std::ranges::find(taps.outside, true) == taps.outside.end()) return result;
  std::vector<std::int64_t> along(static_cast<std::size_t>(x.shape().rank()), 1);
  along[static_cast<std::size_t>(number)] = axis.to;
  Tensor mask(TensorType{DType::boolean, Shape(along)});
  std::ranges::copy(taps.outside, mask.as<bool>().begin());
  return where(graph.constant(std::move(mask)), rules.beyond, result);
}

// The weights of an axis are computed when the graph is built.
void require_resizable(double to, double scale) {
  constexpr double most = 1 << 24;
  if (!(scale > 0) || !(to <= most))
    throw UserError(
        fmt::format("the scale {} to {} elements is impossible; an axis has at most {} elements, and scales "
                    "are above 0",
                    scale, to, most));
}

std::vector<ResizedAxis> axes_by_scales(const Shape& shape, const std::vector<double>& scales) {
  if (static_cast<std::int64_t>(scales.size()) != shape.rank())
    throw UserError(fmt::format("{} scales do not fit {}", scales.size(), to_string(shape)));
  std::vector<ResizedAxis> axes;
  for (std::int64_t i = 0; i < shape.rank(); ++i) {
    const double scale = scales[static_cast<std::size_t>(i)];
    const double to = std::floor(static_cast<double>(shape[i]) * scale);
    require_resizable(to, scale);
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
    const double scale = static_cast<double>(to) / static_cast<double>(shape[i]);
    require_resizable(static_cast<double>(to), scale);
    axes.push_back({.from = shape[i], .to = to, .scale = scale});
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

// From version 18 on an attribute may name the axes. Their numbers (scales, for example) are spread over all axes, and
// the other axes get `otherwise`.
template <class Number>
std::vector<Number> spread(const std::vector<Number>& numbers, const std::vector<std::int64_t>& axes,
                           const std::vector<Number>& otherwise) {
  if (axes.empty()) return numbers;
  if (numbers.size() != axes.size())
    throw UserError(fmt::format("{} numbers do not fit {} axes", numbers.size(), axes.size()));
  std::vector<Number> all = otherwise;
  for (std::size_t i = 0; i < axes.size(); ++i)
    all[static_cast<std::size_t>(normalise_axis(axes[i], static_cast<std::int64_t>(all.size())))] =
        numbers[i];
  return all;
}

// Gives all named axes (all axes if none is named) one scale: the smallest of theirs for "not_larger", the largest for
// "not_smaller".
void keep_aspect_ratio(std::vector<ResizedAxis>& axes, const std::vector<std::int64_t>& named,
                       const std::string& policy) {
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller")
    throw UserError(fmt::format("the keep_aspect_ratio_policy '{}' is not supported", policy));
  std::vector<ResizedAxis*> scaled;
  for (const std::int64_t number : named)
    scaled.push_back(
        &axes[static_cast<std::size_t>(normalise_axis(number, static_cast<std::int64_t>(axes.size())))]);
  if (named.empty())
    for (ResizedAxis& axis : axes) scaled.push_back(&axis);
  if (scaled.empty()) return;
  const auto [smallest, largest] =
      std::ranges::minmax_element(scaled, {}, [](const ResizedAxis* axis) { return axis->scale; });
  const double scale = policy == "not_larger" ? (*smallest)->scale : (*largest)->scale;
  for (ResizedAxis* axis : scaled) {
    axis->scale = scale;
    const double to = std::floor(scale * static_cast<double>(axis->from) + 0.5);
    require_resizable(to, scale);
    axis->to = static_cast<std::int64_t>(to);
  }
}

std::vector<ResizedAxis> resized_axes(Call& call, const std::vector<std::int64_t>& named) {
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  const Shape& shape = call[0].shape();
  if (is_given(call, 2) && is_given(call, 3))
    throw UserError("it has both scales and sizes; one must be left out");
  if (is_given(call, 3)) {
    std::vector<ResizedAxis> axes =
        axes_by_sizes(shape, spread(call.input_integers(3), named, shape.extents()));
    keep_aspect_ratio(axes, named, policy);
    return axes;
  }
  const std::vector<double> ones(static_cast<std::size_t>(shape.rank()), 1);
  return axes_by_scales(shape, spread(call.value(2).to_doubles(), named, ones));
}

// Sets the region that tf_crop_and_resize takes: the starts of all axes, and then their ends.
void set_region(std::vector<ResizedAxis>& axes, const std::vector<double>& region,
                const std::vector<std::int64_t>& named) {
  const std::size_t given = named.empty() ? axes.size() : named.size();
  if (region.size() != 2 * given) throw UserError("roi needs two numbers for each axis");
  if (!std::ranges::all_of(region, [](double number) { return std::abs(number) <= 1e6; }))
    throw UserError("the numbers of roi must be from -1e6 to 1e6");
  const auto middle = region.begin() + static_cast<std::ptrdiff_t>(given);
  const std::vector<double> starts =
      spread({region.begin(), middle}, named, std::vector<double>(axes.size(), 0));
  const std::vector<double> ends = spread({middle, region.end()}, named, std::vector<double>(axes.size(), 1));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i].start = starts[i];
    axes[i].end = ends[i];
  }
}

std::vector<Node> resize(Call& call) {
  const ResizeRules rules{.mode = call.text("mode", "nearest"),
                          .transform = call.text("coordinate_transformation_mode", "half_pixel"),
                          .rounding = call.text("nearest_mode", "round_prefer_floor"),
                          .cubic = call.real("cubic_coeff_a", -0.75),
                          .excludes_outside = call.flag("exclude_outside", false),
                          .smooths = call.flag("antialias", false),
                          .beyond = call.real("extrapolation_value", 0)};
  const std::vector<std::int64_t> named = call.integers("axes");
  std::vector<ResizedAxis> axes = resized_axes(call, named);
  if (rules.transform == "tf_crop_and_resize") set_region(axes, call.value(1).to_doubles(), named);
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
