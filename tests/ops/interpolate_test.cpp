#include "core/ops/interpolate.h"

#include <cmath>
#include <doctest/doctest.h>

#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::interpolate_test {

namespace {

using reference::Index;

double cubic_kernel(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x < 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  if (x < 2) return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
  return 0;
}

// The part of the pixel at distance x in a value.
double linear_kernel(double x) { return std::max(0.0, 1 - std::abs(x)); }

struct Axis {
  std::int64_t input;
  double step;
};

// The weight of each pixel of an axis in element i of the result.
std::vector<double> weights_of(const InterpolateOptions& options, const Axis& axis, std::int64_t i) {
  std::vector<double> weights(static_cast<std::size_t>(axis.input));
  const auto add = [&](std::int64_t pixel, double weight) {
    weights[static_cast<std::size_t>(std::min(std::max<std::int64_t>(pixel, 0), axis.input - 1))] += weight;
  };
  const auto index = static_cast<double>(i);
  const double position = options.align_corners ? index * axis.step : (index + 0.5) * axis.step - 0.5;
  const auto below = static_cast<std::int64_t>(std::floor(position));
  switch (options.mode) {
    case InterpolateMode::nearest:
      add(static_cast<std::int64_t>(std::floor(index * axis.step + 1e-9)), 1);
      break;
    case InterpolateMode::nearest_exact:
      add(static_cast<std::int64_t>(std::floor((index + 0.5) * axis.step + 1e-9)), 1);
      break;
    case InterpolateMode::bicubic:
      for (std::int64_t pixel = below - 3; pixel <= below + 4; ++pixel)
        add(pixel, cubic_kernel(position - static_cast<double>(pixel)));
      break;
    default:
      for (std::int64_t pixel = below - 1; pixel <= below + 2; ++pixel)
        add(pixel, linear_kernel(position - static_cast<double>(pixel)));
  }
  return weights;
}

Tensor along_axis(const Tensor& x, std::size_t axis, std::int64_t output, double step,
                  const InterpolateOptions& options) {
  Index extents = x.shape().extents();
  const std::int64_t input = extents[axis];
  extents[axis] = output;
  Tensor y = reference::zeros(Shape(extents));
  reference::for_each_index(y.shape(), [&](const Index& to) {
    const std::vector<double> weights = weights_of(options, {input, step}, to[axis]);
    Index from = to;
    for (from[axis] = 0; from[axis] < input; ++from[axis])
      reference::at(y, to) += weights[static_cast<std::size_t>(from[axis])] * reference::at(x, from);
  });
  return y;
}

Tensor expected_image(const Tensor& x, const InterpolateOptions& options) {
  Tensor y = x;
  for (std::size_t axis = 2; axis < static_cast<std::size_t>(x.shape().rank()); ++axis) {
    const auto input = static_cast<double>(x.shape()[static_cast<std::int64_t>(axis)]);
    const auto number = [&](const auto& list) {
      return static_cast<double>(list.size() == 1 ? list[0] : list[axis - 2]);
    };
    const double output =
        options.size.empty() ? std::floor(input * number(options.scale)) : number(options.size);
    double step = options.size.empty() ? 1 / number(options.scale) : input / output;
    if (options.align_corners) step = output > 1 ? (input - 1) / (output - 1) : 0;
    y = along_axis(y, axis, static_cast<std::int64_t>(output), step, options);
  }
  return y;
}

OpCase resized(const std::string& name, Shape x, InterpolateOptions options) {
  return {"interpolate, " + name,
          "gather",
          [=](Graph&, auto in) { return std::vector{interpolate(in[0], options)}; },
          {{std::move(x)}},
          [=](auto in) { return std::vector{expected_image(in[0], options)}; }};
}

// Channel (c f + a) f + b has the pixels (a, b) of each square.
Tensor expected_shuffle(const Tensor& x, std::int64_t f) {
  const Shape& of = x.shape();
  Tensor y = reference::zeros({of[0], of[1] / (f * f), of[2] * f, of[3] * f});
  reference::for_each_index(y.shape(), [&](const Index& to) {
    reference::at(y, to) =
        reference::at(x, to[0], (to[1] * f + to[2] % f) * f + to[3] % f, to[2] / f, to[3] / f);
  });
  return y;
}

Tensor expected_unshuffle(const Tensor& x, std::int64_t f) {
  const Shape& of = x.shape();
  Tensor y = reference::zeros({of[0], of[1] * f * f, of[2] / f, of[3] / f});
  reference::for_each_index(x.shape(), [&](const Index& from) {
    reference::at(y, from[0], (from[1] * f + from[2] % f) * f + from[3] % f, from[2] / f, from[3] / f) =
        reference::at(x, from);
  });
  return y;
}

const Cases cases({
    resized("nearest, twice the size", {2, 2, 2, 3}, {.scale = {2}}),
    resized("nearest, to a size", {1, 2, 5}, {.size = {8}}),
    resized("nearest, smaller", {1, 1, 5, 7}, {.size = {2, 3}}),
    resized("nearest, a scale that leaves a rest", {1, 1, 5, 4}, {.scale = {1.5, 0.6}}),
    resized("the exact nearest", {1, 2, 5, 3}, {.size = {3, 5}, .mode = InterpolateMode::nearest_exact}),
    resized("nearest, no channels", {2, 0, 3}, {.scale = {2}}),
    resized("linear", {2, 2, 4}, {.size = {7}, .mode = InterpolateMode::linear}),
    resized("linear, one element", {1, 2, 3},
            {.size = {1}, .mode = InterpolateMode::linear, .align_corners = true}),
    resized("bilinear", {1, 17, 3, 4}, {.scale = {2}, .mode = InterpolateMode::bilinear}),
    resized("bilinear, smaller", {1, 1, 5, 4}, {.size = {2, 3}, .mode = InterpolateMode::bilinear}),
    resized("bilinear, a scale that leaves a rest", {1, 1, 3, 4},
            {.scale = {1.5, 1.3}, .mode = InterpolateMode::bilinear}),
    resized("bilinear, corners", {1, 2, 3, 4},
            {.size = {5, 6}, .mode = InterpolateMode::bilinear, .align_corners = true}),
    resized("bicubic", {1, 1, 3, 4}, {.size = {5, 7}, .mode = InterpolateMode::bicubic}),
    resized("bicubic, corners", {1, 1, 4, 3},
            {.size = {6, 5}, .mode = InterpolateMode::bicubic, .align_corners = true}),
    resized("trilinear", {1, 1, 2, 3, 2}, {.size = {3, 4, 3}, .mode = InterpolateMode::trilinear}),
    {"pixel_shuffle",
     "permute",
     [](Graph&, auto in) { return std::vector{pixel_shuffle(in[0], 2)}; },
     {{{2, 8, 2, 3}}},
     [](auto in) { return std::vector{expected_shuffle(in[0], 2)}; }},
    {"pixel_unshuffle",
     "permute",
     [](Graph&, auto in) { return std::vector{pixel_unshuffle(in[0], 3)}; },
     {{{1, 2, 3, 6}}},
     [](auto in) { return std::vector{expected_unshuffle(in[0], 3)}; }},
});

WrongCase refused(const std::string& name, const TensorType& x, InterpolateOptions options,
                  std::vector<std::string> words) {
  return {"interpolate, " + name, "interpolate",
          [=](Graph& graph) { interpolate(graph.input("x", x), options); }, std::move(words)};
}

constexpr DType f32 = DType::float32;

const WrongCases wrong({
    refused("of integers", {DType::uint8, {1, 1, 4}}, {.size = {2}}, {"cast()"}),
    refused("nothing to do", {f32, {1, 1, 4}}, {}, {"either a size or a scale"}),
    refused("size and scale", {f32, {1, 1, 4}}, {.size = {2}, .scale = {2}}, {"either a size or a scale"}),
    refused("too many numbers", {f32, {1, 1, 4}}, {.size = {2, 2}}, {"one for each of the 1 axes", "not 2"}),
    refused("bilinear of lines", {f32, {1, 1, 4}}, {.size = {2}, .mode = InterpolateMode::bilinear},
            {"the mode needs 4 axes"}),
    refused("corners of the nearest pixel", {f32, {1, 1, 4}}, {.size = {2}, .align_corners = true},
            {"align_corners has no effect"}),
    refused("to nothing", {f32, {1, 1, 4}}, {.scale = {0.2}}, {"axis 2 would have 0 elements"}),
    refused("a negative scale", {f32, {1, 1, 4}}, {.scale = {-1}}, {"scale must be a finite number above 0"}),
    refused("of nothing", {f32, {1, 1, 0}}, {.size = {2}}, {"axis 2 is empty"}),
    {"pixel_shuffle of three channels",
     "pixel_shuffle",
     [](Graph& graph) {
       pixel_shuffle(graph.input("x", {f32, {1, 3, 2, 2}}), 2);
     },
     {"3 channels must be divisible by the square of the factor, 4"}},
    {"pixel_unshuffle of an odd image",
     "pixel_unshuffle",
     [](Graph& graph) {
       pixel_unshuffle(graph.input("x", {f32, {1, 3, 4, 3}}), 2);
     },
     {"height and width must be divisible by the factor, 2"}},
});

}  // namespace

TEST_CASE("interpolate: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("interpolate: what it refuses") { check_all(wrong); }

TEST_CASE("interpolation by hand") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 1, 2}});
  const auto results =
      Runner(graph,
             {interpolate(x, {.scale = {2}}), interpolate(x, {.scale = {2}, .mode = InterpolateMode::linear}),
              interpolate(x, {.size = {3}, .mode = InterpolateMode::linear, .align_corners = true})},
             test_backend())({Tensor::of<double>({1, 1, 2}, {1, 5})});
  check_close(results[0], {1, 1, 5, 5});
  check_close(results[1], {1, 2, 4, 5});
  check_close(results[2], {1, 3, 5});
}

TEST_CASE("the nearest pixel of a large whole scale is exact") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 1, 2}});
  const Tensor y = Runner(graph, {interpolate(x, {.scale = {49}})},
                          test_backend())({Tensor::of<double>({1, 1, 2}, {1, 5})})[0];
  for (std::size_t i = 0; i < 98; ++i) CHECK(y.as<double>()[i] == (i < 49 ? 1 : 5));
}

}  // namespace plexaura::testing::interpolate_test
