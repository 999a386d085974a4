#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/conv3d.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::convolution3d_test {

namespace {

// The error of a sum of float32 of up to 17 x 27 x 210 products of numbers below 1; see convolution_test.cpp.
constexpr double bound = 2e-6;

struct Case {
  Shape x;
  std::int64_t outputs;
  Size3d kernel;
  Conv3dOptions options;
};

const std::vector<Case> cases{
    {{2, 3, 5, 6, 7}, 17, 3, {.padding = 1}},
    {{2, 17, 4, 5, 6}, 3, 3, {}},
    {{1, 16, 4, 7, 5}, 32, 1, {}},
    {{2, 32, 5, 6, 7}, 16, 3, {.stride = 2, .padding = 1}},
    {{2, 1, 6, 8, 8}, 8, 3, {}},
    {{2, 16, 7, 9, 6}, 16, {1, 3, 2}, {.stride = {1, 2, 1}, .padding = {0, 2, 1}, .dilation = {1, 2, 3}}},
    {{2, 8, 6, 5, 7},
     12,
     {3, 2, 3},
     {.stride = {2, 1, 1}, .padding = {1, 0, 2}, .padding_end = Size3d{0, 1, 1}}},
    {{2, 12, 4, 6, 6}, 18, 3, {.padding = 1, .groups = 3}},
    {{2, 16, 4, 6, 6}, 16, 3, {.padding = 1, .groups = 16}},
    {{2, 32, 3, 4, 4}, 48, {2, 1, 3}, {.groups = 2}},
    {{1, 3, 12, 14, 14}, 32, {5, 7, 7}, {.stride = {1, 2, 2}, .padding = {2, 3, 3}}},
};

std::vector<Node> forward_and_backward(Graph& graph, DType dtype, const Case& of) {
  const Node x = graph.input("x", {dtype, of.x});
  const Node weights = graph.input(
      "weights", {dtype, {of.outputs, of.x[1] / of.options.groups, of.kernel.d, of.kernel.h, of.kernel.w}});
  const Node bias = graph.input("bias", {dtype, {of.outputs}});
  const Node y = relu(conv3d(x, weights, bias, of.options));
  const Node grad = where(gt(y, 0), graph.input("grad", {dtype, y.shape()}), 0);
  return {y, conv3d_input_grad(weights, grad, spatial_3d(of.x), of.options),
          conv3d_weight_grad(x, grad, of.kernel, of.options), sum(grad, {.axes = {0, 2, 3, 4}})};
}

}  // namespace

TEST_CASE("convolutions of volumes and their gradients agree, and none is left to slow code") {
  for (const Case& of : cases)
    for (const Mode mode : {Mode::train, Mode::inference}) {
      CAPTURE(to_string(of.x));
      CAPTURE(of.outputs);
      const Agreement result = agreement(
          [&](Graph& graph, DType dtype) { return forward_and_backward(graph, dtype, of); }, {.mode = mode});
      CAPTURE(result.program);
      CHECK(result.worst() < bound);
      CHECK_FALSE(result.uses("ref"));
      CHECK(result.uses("portable") != has_onednn());
    }
}

TEST_CASE("convolutions of volumes of 16 bits are computed by the library, too") {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const Agreement result = agreement(
        [](Graph& graph, DType type) -> std::vector<Node> {
          const Node x = graph.input("x", {type, {2, 8, 4, 6, 7}});
          const Node weights = graph.input("weights", {type, {12, 8, 3, 3, 3}});
          const Node grad = graph.input("grad", {type, {2, 12, 4, 6, 7}});
          return {conv3d(x, weights, {.padding = 1}),
                  conv3d_input_grad(weights, grad, {4, 6, 7}, {.padding = 1}),
                  conv3d_weight_grad(x, grad, 3, {.padding = 1})};
        },
        {.dtype = dtype});
    CAPTURE(result.program);
    CHECK(result.worst() < 0.02);  // bfloat16 has 8 bits
    CHECK(result.uses("portable") != has_onednn());
  }
}

// The library's kernel for the gradient by the weights may write beyond them here, so it is not taken.
TEST_CASE("convolutions of volumes of one pixel in groups agree") {
  const Case of{{1, 8, 1, 1, 1}, 8, 1, {.groups = 2}};
  const Agreement result =
      agreement([&](Graph& graph, DType dtype) { return forward_and_backward(graph, dtype, of); });
  CHECK(result.worst() < bound);
}

TEST_CASE("transposed convolutions of volumes and their gradients agree, and none is left to slow code") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node x = graph.input("x", {dtype, {2, 16, 3, 5, 4}});
    const Node weights = graph.input("weights", {dtype, {16, 12, 3, 2, 3}});
    const Node bias = graph.input("bias", {dtype, {24}});
    const Node y = conv_transpose3d(
        x, weights, bias,
        {.stride = {2, 1, 2}, .padding = {1, 0, 1}, .groups = 2, .output_padding = {1, 0, 0}});
    const Node grad = graph.input("grad", y.type());
    std::vector<Node> found = vjp(std::vector{y}, std::vector{grad}, std::vector{x, weights, bias});
    found.push_back(y);
    return found;
  });
  CAPTURE(result.program);
  CHECK(result.worst() < bound);
  CHECK(result.uses("portable") != has_onednn());
}

TEST_CASE("a convolution of volumes has the regions of one of images") {
  const Agreement bias = agreement(
      [](Graph& graph, DType dtype) -> std::vector<Node> {
        const Node x = graph.input("x", {dtype, {4, 16, 12, 16, 16}});
        const Node grad = graph.input("grad", {dtype, {4, 20, 12, 16, 16}});
        return {conv3d_weight_grad(x, grad, 3, {.padding = 1}), sum(grad, {.axes = {0, 2, 3, 4}})};
      },
      {.low = 0});
  CAPTURE(bias.program);
  CHECK(bias.uses("conv3d_weight_grad+bias") == has_onednn());
  CHECK(bias.errors[1] < 2e-7);
  const Agreement sum = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node weights = graph.input("weights", {dtype, {32, 17, 1, 1, 1}});
    const Node grad = graph.input("grad", {dtype, {2, 32, 3, 5, 5}});
    const Node side = neg(graph.input("side", {dtype, {2, 17, 3, 5, 5}}));
    return {conv3d_input_grad(weights, grad, {3, 5, 5}, {}) + side};
  });
  CAPTURE(sum.program);
  CHECK(sum.uses("+ sum") == has_onednn());
  CHECK(sum.worst() < bound);
}

}  // namespace plexaura::testing::convolution3d_test
