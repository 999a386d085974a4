#include "core/ops/conv1d.h"

#include <doctest/doctest.h>

#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/convolution.h"

namespace plexaura::testing::conv1d_test {

namespace {

OpCase convolved(const std::string& name, Shape x, Shape weights, Conv1dOptions options, bool bias = false) {
  OpCase op_case{
      "conv1d, " + name,
      "conv2d",
      [=](Graph&, auto in) {
        return std::vector{bias ? conv1d(in[0], in[1], in[2], options) : conv1d(in[0], in[1], options)};
      },
      {{std::move(x)}, {weights}},
      [=](auto in) {
        const Tensor y = reference::convolve(in[0], in[1],
                                             {{options.stride},
                                              {options.padding},
                                              {options.padding_end.value_or(options.padding)},
                                              {options.dilation},
                                              options.groups});
        return std::vector{bias ? reference::add_bias(y, in[2]) : y};
      }};
  if (bias) op_case.inputs.push_back({{weights[0]}});
  return op_case;
}

const Cases cases({
    convolved("plain", {2, 3, 7}, {4, 3, 3}, {}),
    convolved("bias, stride, padding and dilation", {2, 2, 9}, {3, 2, 3},
              {.stride = 2, .padding = 2, .dilation = 2}, true),
    convolved("two groups", {1, 4, 5}, {2, 2, 2}, {.groups = 2}),
    convolved("causal", {1, 17, 6}, {3, 17, 3}, {.padding = 2, .padding_end = 0}),
});

const WrongCases wrong({
    {"conv1d of images",
     "conv1d",
     [](Graph& graph) {
       conv1d(graph.input("x", {DType::float32, {1, 2, 8, 8}}),
              graph.input("w", {DType::float32, {3, 2, 3}}));
     },
     {"the input needs the axes N, C and L"}},
    {"conv1d of images with a bias",
     "conv1d",
     [](Graph& graph) {
       conv1d(graph.input("x", {DType::float32, {1, 2, 8, 8}}), graph.input("w", {DType::float32, {3, 2, 3}}),
              graph.input("b", {DType::float32, {3}}));
     },
     {"the input needs the axes N, C and L"}},
    {"conv1d with the weights of images",
     "conv1d",
     [](Graph& graph) {
       conv1d(graph.input("x", {DType::float32, {1, 2, 8}}),
              graph.input("w", {DType::float32, {3, 2, 3, 3}}));
     },
     {"the weights need the axes O, C / groups and K"}},
});

}  // namespace

TEST_CASE("conv1d: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("conv1d: what it refuses") { check_all(wrong); }

TEST_CASE("conv1d by hand") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 1, 4}});
  const Node weights = graph.input("w", {DType::float64, {1, 1, 2}});
  const auto results = Runner(
      graph, {conv1d(x, weights), conv1d(x, weights, {.padding = 1, .padding_end = 0})},
      test_backend())({Tensor::of<double>({1, 1, 4}, {1, 2, 3, 4}), Tensor::of<double>({1, 1, 2}, {1, 10})});
  check_close(results[0], {21, 32, 43});
  check_close(results[1], {10, 21, 32, 43});
}

}  // namespace plexaura::testing::conv1d_test
