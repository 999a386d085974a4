#include "core/ops/interpolate.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/gather.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// One pixel for each element of the result along an axis: the position from which the element is read, and the weight of
// the pixel. Without weights, each pixel counts as it is.
struct Tap {
  std::vector<std::int64_t> positions;
  std::vector<double> weights;
};

// The sampling of one axis: its sizes, and the distance between samples.
struct Sampling {
  std::int64_t input;
  std::int64_t output;
  // The distance of neighbouring elements of the result is pixels / elements.
  double pixels;
  double elements;
  bool align_corners;

  double distance(double of_elements) const { return of_elements * pixels / elements; }
  // The position of an element of the result, in pixels of the input.
  double position(std::int64_t i) const {
    const auto index = static_cast<double>(i);
    return align_corners ? distance(index) : distance(index + 0.5) - 0.5;
  }
  std::int64_t within(std::int64_t pixel) const { return std::clamp<std::int64_t>(pixel, 0, input - 1); }
};

std::int64_t floor_of(double value) { return static_cast<std::int64_t>(std::floor(value)); }

std::vector<Tap> nearest_taps(const Sampling& of, double shift) {
  Tap tap;
  for (std::int64_t i = 0; i < of.output; ++i)
    tap.positions.push_back(of.within(floor_of(of.distance(static_cast<double>(i) + shift))));
  return {tap};
}

std::vector<Tap> linear_taps(const Sampling& of) {
  std::vector<Tap> taps(2);
  for (std::int64_t i = 0; i < of.output; ++i) {
    const double position = std::max(0.0, of.position(i));
    const std::int64_t first = of.within(floor_of(position));
    const double weight = std::min(1.0, position - static_cast<double>(first));
    taps[0].positions.push_back(first);
    taps[0].weights.push_back(1 - weight);
    taps[1].positions.push_back(of.within(first + 1));
    taps[1].weights.push_back(weight);
  }
  return taps;
}

// The weight of a pixel at this distance, after Keys, with the parameter of PyTorch.
double cubic_weight(double distance) {
  constexpr double a = -0.75;
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

std::vector<Tap> cubic_taps(const Sampling& of) {
  std::vector<Tap> taps(4);
  for (std::int64_t i = 0; i < of.output; ++i) {
    const double position = of.position(i);
    const std::int64_t first = floor_of(position) - 1;
    for (std::int64_t t = 0; t < 4; ++t) {
      Tap& tap = taps[static_cast<std::size_t>(t)];
      tap.positions.push_back(of.within(first + t));
      tap.weights.push_back(cubic_weight(position - static_cast<double>(first + t)));
    }
  }
  return taps;
}

std::vector<Tap> taps_of(InterpolateMode mode, const Sampling& of) {
  if (mode == InterpolateMode::nearest) return nearest_taps(of, 0);
  if (mode == InterpolateMode::nearest_exact) return nearest_taps(of, 0.5);
  return mode == InterpolateMode::bicubic ? cubic_taps(of) : linear_taps(of);
}

// Adds up the pixels that the taps read along an axis, multiplied by their weights.
Node sampled(const Node& x, std::int64_t axis, const std::vector<Tap>& taps) {
  Graph& graph = x.graph();
  Node sum;
  for (const Tap& tap : taps) {
    const auto count = static_cast<std::int64_t>(tap.positions.size());
    Node pixels = gather(x, graph.constant(Tensor::of<std::int64_t>({count}, tap.positions)), {.axis = axis});
    if (!tap.weights.empty()) {
      std::vector<std::int64_t> extents(static_cast<std::size_t>(x.shape().rank() - axis), 1);
      extents[0] = count;
      const Node weights = cast(graph.constant(Tensor::of<double>(Shape(extents), tap.weights)), x.dtype());
      pixels = pixels * weights;
    }
    sum = sum.is_empty() ? pixels : sum + pixels;
  }
  return sum;
}

// The number of axes that the mode needs, N and C included; 0 for any number.
std::int64_t rank_of(InterpolateMode mode) {
  switch (mode) {
    case InterpolateMode::linear:
      return 3;
    case InterpolateMode::bilinear:
    case InterpolateMode::bicubic:
      return 4;
    case InterpolateMode::trilinear:
      return 5;
    default:
      return 0;
  }
}

void require_options(const Operand& x, const InterpolateOptions& options) {
  const auto require = [&](bool holds, const std::string& rule) {
    require_that(holds, "interpolate", {x}, rule);
  };
  require_floating_operand("interpolate", x);
  const Shape shape = x.node().shape();
  const std::int64_t rank = rank_of(options.mode);
  require(
      rank == 0 ? shape.rank() >= 3 : shape.rank() == rank,
      fmt::format("the mode needs {} axes{}, of which the first two are N and C; reshape the value or choose "
                  "another mode",
                  rank == 0 ? 3 : rank, rank == 0 ? " or more" : ""));
  require(!options.align_corners || rank != 0,
          "align_corners has no effect on the nearest pixel; leave it out");
  require(options.size.empty() != options.scale.empty(), "needs either a size or a scale");
  const std::size_t given = std::max(options.size.size(), options.scale.size());
  require(given == 1 || given == static_cast<std::size_t>(shape.rank()) - 2,
          fmt::format("size or scale needs one number, or one for each of the {} axes after N and C, not {}",
                      shape.rank() - 2, given));
  for (std::int64_t axis = 2; axis < shape.rank(); ++axis)
    require(shape[axis] > 0, fmt::format("axis {} is empty and has no pixels", axis));
  for (const double scale : options.scale)
    require(std::isfinite(scale) && scale > 0,
            fmt::format("a scale must be a finite number above 0, not {}", scale));
}

Sampling sampling_of(const Operand& x, std::int64_t axis, const InterpolateOptions& options) {
  const auto number = [&](const auto& list) {
    return list.size() == 1 ? list[0] : list[static_cast<std::size_t>(axis) - 2];
  };
  const std::int64_t input = x.node().shape()[axis];
  const bool has_size = !options.size.empty();
  const double exact = has_size ? static_cast<double>(number(options.size))
                                : std::floor(static_cast<double>(input) * number(options.scale));
  require_that(exact >= 1 && exact <= 2147483647, "interpolate", {x},
               fmt::format("axis {} would have {} elements; it needs 1 to 2147483647", axis, exact));
  const auto output = static_cast<std::int64_t>(exact);
  const auto whole = static_cast<double>(input);
  if (options.align_corners)
    return output > 1 ? Sampling{input, output, whole - 1, exact - 1, true}
                      : Sampling{input, output, 0, 1, true};
  if (has_size) return {input, output, whole, exact, false};
  return {input, output, 1, number(options.scale), false};
}

void require_shuffled(std::string_view builder, const Operand& x, std::int64_t factor) {
  require_that(x.node().shape().rank() == 4, builder, {x}, "needs the axes N, C, H and W; reshape the value");
  require_that(factor >= 1 && factor <= 32767, builder, {x},
               fmt::format("the factor must be 1 to 32767, not {}", factor));
}

}  // namespace

Node interpolate(Operand x, InterpolateOptions options) {
  require_options(x, options);
  const Graph::WithOrigin guard = origin_of_caller(x);
  const bool only_moves = rank_of(options.mode) == 0;
  Node y = only_moves ? x.node() : cast(x.node(), wide_dtype_of(x));
  for (std::int64_t axis = 2; axis < y.shape().rank(); ++axis) {
    const Sampling of = sampling_of(x, axis, options);
    const bool is_the_same = of.input == of.output && of.pixels == of.elements;
    if (!is_the_same) y = sampled(y, axis, taps_of(options.mode, of));
  }
  return cast(y, x.node().dtype());
}

Node pixel_shuffle(Operand x, std::int64_t factor) {
  require_shuffled("pixel_shuffle", x, factor);
  const Shape shape = x.node().shape();
  require_that(shape[1] % (factor * factor) == 0, "pixel_shuffle", {x},
               fmt::format("the {} channels must be divisible by the square of the factor, {}", shape[1],
                           factor * factor));
  const std::int64_t channels = shape[1] / (factor * factor);
  const auto at = x.where();
  const Node apart = reshape(x, {shape[0], channels, factor, factor, shape[2], shape[3]});
  return reshape({permute({apart, at}, {0, 1, 4, 2, 5, 3}), at},
                 {shape[0], channels, shape[2] * factor, shape[3] * factor});
}

Node pixel_unshuffle(Operand x, std::int64_t factor) {
  require_shuffled("pixel_unshuffle", x, factor);
  const Shape shape = x.node().shape();
  require_that(shape[2] % factor == 0 && shape[3] % factor == 0, "pixel_unshuffle", {x},
               fmt::format("height and width must be divisible by the factor, {}", factor));
  const std::int64_t height = shape[2] / factor;
  const std::int64_t width = shape[3] / factor;
  const auto at = x.where();
  const Node apart = reshape(x, {shape[0], shape[1], height, factor, width, factor});
  return reshape({permute({apart, at}, {0, 1, 3, 5, 2, 4}), at},
                 {shape[0], shape[1] * factor * factor, height, width});
}

}  // namespace plexaura
