#include "core/ops/conv2d.h"

#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/convolution.h"

namespace plexaura::testing::conv2d_test {

namespace {

OpCase convolved(const std::string& name, Shape x, Shape weights, Conv2dOptions options, bool bias = false) {
  OpCase op_case{
      "conv2d, " + name,
      "conv2d",
      [=](Graph&, auto in) {
        return std::vector{bias ? conv2d(in[0], in[1], in[2], options) : conv2d(in[0], in[1], options)};
      },
      {{std::move(x)}, {weights}},
      [=](auto in) {
        const Tensor y = reference::convolve(in[0], in[1], reference::convolution_of(options));
        return std::vector{bias ? reference::add_bias(y, in[2]) : y};
      }};
  if (bias) op_case.inputs.push_back({{weights[0]}});
  return op_case;
}

OpCase input_gradient(const std::string& name, Shape weights, Shape grad_out, Size2d input,
                      Conv2dOptions options) {
  return {"conv2d_input_grad, " + name,
          "conv2d_input_grad",
          [=](Graph&, auto in) { return std::vector{conv2d_input_grad(in[0], in[1], input, options)}; },
          {{std::move(weights)}, {std::move(grad_out)}},
          [=](auto in) {
            return std::vector{reference::convolution_input_grad(in[0], in[1], reference::index_of(input),
                                                                 reference::convolution_of(options))};
          }};
}

OpCase weight_gradient(const std::string& name, Shape x, Shape grad_out, Size2d kernel,
                       Conv2dOptions options) {
  return {"conv2d_weight_grad, " + name,
          "conv2d_weight_grad",
          [=](Graph&, auto in) { return std::vector{conv2d_weight_grad(in[0], in[1], kernel, options)}; },
          {{std::move(x)}, {std::move(grad_out)}},
          [=](auto in) {
            return std::vector{reference::convolution_weight_grad(in[0], in[1], reference::index_of(kernel),
                                                                  reference::convolution_of(options))};
          }};
}

constexpr Conv2dOptions odd{.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}};

const Cases cases({
    convolved("plain", {2, 2, 4, 5}, {3, 2, 3, 2}, {}),
    convolved("one by one", {2, 3, 3, 2}, {4, 3, 1, 1}, {}),
    convolved("bias, odd strides, padding and dilation", {2, 2, 5, 4}, {3, 2, 3, 2}, odd, true),
    convolved("stride 2 that leaves a rest", {1, 1, 6, 7}, {2, 1, 3, 3}, {.stride = {2, 2}}),
    convolved("stride beyond the kernel", {1, 2, 7, 7}, {2, 2, 1, 2}, {.stride = {3, 3}}),
    convolved("two groups", {1, 4, 4, 3}, {6, 2, 2, 2}, {.padding = {1, 0}, .groups = 2}, true),
    convolved("depthwise", {2, 3, 4, 4}, {3, 1, 3, 3}, {.padding = {1, 1}, .groups = 3}),
    convolved("depthwise on images of one pixel", {2, 64, 1, 1}, {64, 1, 3, 3},
              {.padding = {1, 1}, .groups = 64}),
    convolved("3 to 17 channels", {1, 3, 4, 3}, {17, 3, 2, 2}, {}, true),
    convolved("17 to 3 channels", {1, 17, 3, 4}, {3, 17, 2, 1}, {.stride = {1, 2}}),
    convolved("8 to 12 channels", {1, 8, 4, 3}, {12, 8, 2, 2}, {}, true),
    convolved("12 channels in four groups", {1, 12, 3, 4}, {8, 3, 2, 2}, {.groups = 4}, true),
    convolved("a kernel larger than the image", {1, 5, 2, 3}, {5, 5, 4, 5}, {.padding = {2, 2}}),
    convolved("larger than a tile", {1, 8, 9, 10}, {33, 8, 3, 3}, {.padding = {1, 1}}),
    convolved("no samples", {0, 2, 4, 4}, {3, 2, 3, 3}, {}, true),
    convolved("wide padding, strides along both axes", {1, 2, 5, 6}, {2, 2, 3, 3},
              {.stride = {3, 2}, .padding = {2, 3}}),
    convolved("zeros only at the end", {1, 8, 5, 6}, {8, 8, 3, 3}, {.padding_end = Size2d{2, 1}}, true),
    convolved("more zeros at the beginning", {2, 3, 5, 4}, {4, 3, 3, 2},
              {.stride = {2, 1}, .padding = {3, 2}, .padding_end = Size2d{1, 0}}),
    convolved("one by one, zeros at the end", {1, 2, 3, 4}, {3, 2, 1, 1}, {.padding_end = Size2d{1, 2}}),
    input_gradient("odd", {3, 2, 3, 2}, {2, 3, 3, 6}, {5, 4}, odd),
    input_gradient("stride 2 along W into the padding", {2, 3, 1, 3}, {1, 2, 2, 4}, {2, 7},
                   {.stride = {1, 2}, .padding = {0, 1}}),
    input_gradient("two groups", {4, 1, 2, 2}, {1, 4, 2, 2}, {3, 3}, {.groups = 2}),
    weight_gradient("odd", {2, 2, 5, 4}, {2, 3, 3, 6}, {3, 2}, odd),
    weight_gradient("stride 2 along W into the padding", {1, 3, 2, 7}, {1, 2, 2, 4}, {1, 3},
                    {.stride = {1, 2}, .padding = {0, 1}}),
    weight_gradient("two groups", {1, 2, 3, 3}, {1, 4, 2, 2}, {2, 2}, {.groups = 2}),
});

WrongCase refused(const std::string& name, const Shape& x, const Shape& weights, Conv2dOptions options,
                  std::vector<std::string> words) {
  return {
      "conv2d, " + name, "conv2d",
      [=](Graph& graph) {
        conv2d(graph.input("x", {DType::float32, x}), graph.input("w", {DType::float32, weights}), options);
      },
      std::move(words)};
}

const WrongCases wrong({
    refused("channels", {1, 3, 8, 8}, {4, 2, 3, 3}, {},
            {"3 channels", "expect 2", "groups", "float32[1,3,8,8]"}),
    refused("a kernel that does not fit", {1, 2, 2, 8}, {4, 2, 3, 3}, {},
            {"along H", "reaches over 3", "padded input has 2", "padding"}),
    refused("groups that do not divide", {1, 4, 8, 8}, {3, 2, 3, 3}, {.groups = 2},
            {"3 output channels", "divisible by groups (2)"}),
    refused("no groups", {1, 4, 8, 8}, {3, 2, 3, 3}, {.groups = 0}, {"groups must be 1 or more"}),
    refused("stride 0", {1, 2, 8, 8}, {3, 2, 3, 3}, {.stride = {0, 1}}, {"stride must be 1 or more"}),
    refused("a negative padding at the end", {1, 2, 8, 8}, {3, 2, 3, 3}, {.padding_end = Size2d{0, -1}},
            {"padding at the end must be 0 or more (here 0 x -1)"}),
    refused("three axes", {2, 8, 8}, {3, 2, 3, 3}, {}, {"N, C, H and W", "reshape"}),
    {"conv2d, a bias of the wrong length",
     "conv2d",
     [](Graph& graph) {
       conv2d(graph.input("x", {DType::float32, {1, 2, 8, 8}}),
              graph.input("w", {DType::float32, {3, 2, 3, 3}}), graph.input("b", {DType::float32, {2}}));
     },
     {"bias", "3 output channels"}},
    {"conv2d_input_grad, a gradient of another size",
     "conv2d_input_grad",
     [](Graph& graph) {
       conv2d_input_grad(graph.input("w", {DType::float32, {3, 2, 3, 3}}),
                         graph.input("g", {DType::float32, {1, 3, 5, 5}}), {8, 8}, {});
     },
     {"6 x 6"}},
    {"conv2d_weight_grad, other samples",
     "conv2d_weight_grad",
     [](Graph& graph) {
       conv2d_weight_grad(graph.input("x", {DType::float32, {2, 2, 8, 8}}),
                          graph.input("g", {DType::float32, {1, 3, 6, 6}}), {3, 3}, {});
     },
     {"same number of samples"}},
});

}  // namespace

TEST_CASE("conv2d: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("conv2d: every kernel that is offered") { check_other_kernels(cases); }
TEST_CASE("conv2d: what it refuses") { check_all(wrong); }

TEST_CASE("a convolution by hand") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 1, 2, 3}});
  const Node weights = graph.input("weights", {DType::float64, {1, 1, 2, 2}});
  const Node bias = graph.input("bias", {DType::float64, {1}});
  const Node plain = conv2d(x, weights, bias);
  const Node padded = conv2d(x, weights, {.stride = {2, 2}, .padding = {1, 1}});
  const std::vector<Node> grads = gradients(sum(plain), {x, weights});
  const auto results = Runner(graph, {plain, padded, grads[0], grads[1]},
                              test_backend())({Tensor::of<double>({1, 1, 2, 3}, {1, 2, 3,  //
                                                                                 4, 5, 6}),
                                               Tensor::of<double>({1, 1, 2, 2}, {1, 10,  //
                                                                                 100, 1000}),
                                               Tensor::of<double>({1}, {0.5})});
  check_close(results[0], {5421.5, 6532.5});  // 1 + 20 + 400 + 5000 + 0.5, 2 + 30 + 500 + 6000 + 0.5
  check_close(results[1], {1000, 200 + 3000, 40, 5 + 60});  // each window reaches into the padding
  check_close(results[2], {1, 11, 10, 100, 1100, 1000});
  check_close(results[3], {1 + 2, 2 + 3, 4 + 5, 5 + 6});
}

TEST_CASE("conv2d agrees with figures of PyTorch") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 4, 5, 4}});
  const Node weights = graph.input("w", {DType::float64, {2, 2, 2, 3}});
  const Node bias = graph.input("b", {DType::float64, {2}});
  const Node y =
      conv2d(x, weights, bias, {.stride = {2, 1}, .padding = {1, 2}, .dilation = {2, 1}, .groups = 2});
  const Node cotangent = graph.input("g", y.type());
  const std::vector<Node> grads = gradients(sum(y * cotangent), {x, weights, bias});
  const auto results = Runner(graph, {y, grads[0], grads[1], grads[2]}, test_backend())(
      {pattern(x.shape()), pattern(weights.shape(), 5, 1, 13, 6, 8), Tensor::of<double>({2}, {0.5, -0.25}),
       pattern(y.shape(), 3, 2, 7, 3, 2)});
  check_close(results[0], {-0.3125, 1.125,   0.09375,  0.34375, 1.1875,  0.21875,  -0.0625, 1.625,   -2.125,
                           1.34375, 1.875,   -0.3125,  1.03125, 1.15625, -1.6875,  1.53125, 0.9375,  -0.15625,
                           -1.3125, 0.46875, -0.65625, 0.875,   0.59375, -1.34375, -1.6875, 0.6875,  0.25,
                           -2.0625, 1.0,     -1.15625, -0.75,   0.40625, 0.96875,  -2.1875, 0.59375, 0.5});
  check_close(results[1], {0, 0, 0,       0,       1.3125,  -0.875,  1.75,   -0.4375, 0, 0,
                           0, 0, -1.3125, 1.3125,  -0.875,  1.75,    0,      0,       0, 0,
                           0, 0, 0,       0,       -0.375,  -0.0625, -0.625, -0.3125, 0, 0,
                           0, 0, 0.1875,  -0.375,  -0.0625, -0.625,  0,      0,       0, 0,
                           0, 0, 0,       0,       1.5,     -0.3125, 0.0625, -0.4375, 0, 0,
                           0, 0, -0.1875, 1.5,     -0.3125, 0.0625,  0,      0,       0, 0,
                           0, 0, 0,       0,       -1.4375, -1.4375, 0.75,   0.3125,  0, 0,
                           0, 0, 0.75,    -1.4375, -1.4375, 0.75,    0,      0,       0, 0});
  check_close(results[2],
              {0.25,  0.875, 1.5,    -0.375, 0.25,  0.875, -0.375, 0.125, 0.625, -0.875, -0.375, 0.125,
               2.375, 2.5,   -4.375, -3.0,   2.375, 2.5,   4.0,    -3.0,  2.25,  -3.875, 4.0,    -3.0});
  check_close(results[3], {0.0, -0.5});
}

TEST_CASE("convolutions of one shape that differ in an option are not taken for one") {
  const Conv2dOptions near{.padding = {1, 1}};
  const Conv2dOptions far{.padding = {2, 2}, .dilation = {2, 2}};
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 2, 5, 5}});
  const Node weights = graph.input("w", {DType::float64, {2, 2, 3, 3}});
  const std::vector<Node> both{conv2d(x, weights, near),
                               conv2d(x, weights, far),
                               conv2d_input_grad(weights, x, {5, 5}, near),
                               conv2d_input_grad(weights, x, {5, 5}, far),
                               conv2d_weight_grad(x, x, {3, 3}, near),
                               conv2d_weight_grad(x, x, {3, 3}, far)};
  const auto results = Runner(graph, both, test_backend())({pattern(x.shape()), pattern(weights.shape())});
  for (std::size_t i = 0; i < results.size(); i += 2) {
    CAPTURE(i);
    CHECK(results[i] != results[i + 1]);
  }
}

TEST_CASE("a padding that is equal on both sides is written once") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1, 2, 5, 5}});
  const Node weights = graph.input("w", {DType::float32, {2, 2, 3, 3}});
  const auto op = [&](const Conv2dOptions& options) {
    return graph.record(conv2d(x, weights, options).id()).op;
  };
  const auto equal = op({.padding = 1, .padding_end = Size2d{1, 1}});
  CHECK(*equal == *op({.padding = 1}));
  CHECK(!(*equal == *op({.padding = 1, .padding_end = Size2d{1, 0}})));
}

TEST_CASE("a pointwise gradient with zeros at the end, and an addition") {
  Graph graph;
  const Node weights = graph.input("w", {DType::float32, {16, 16, 1, 1}});
  const Node grad = graph.input("g", {DType::float32, {1, 16, 4, 5}});
  const Node addend = graph.input("a", {DType::float32, {1, 16, 3, 3}});
  const Node y = conv2d_input_grad(weights, grad, {3, 3}, {.padding_end = Size2d{1, 2}}) + addend;
  Random random(1);
  const std::vector<Tensor> values{random.tensor(weights.type(), -1, 1), random.tensor(grad.type(), -1, 1),
                                   random.tensor(addend.type(), -1, 1)};
  const Tensor sum = Runner(graph, {y}, test_backend())(values)[0];
  check_close(sum, Runner(graph, {y}, oracle())(values)[0].to_doubles(), 1e-5);
}

TEST_CASE("the gradient of a convolution has as many channels as the weights give") {
  Graph graph;
  const Node weights = graph.input("w", {DType::float32, {4, 1, 3, 3}});
  const Node grad = graph.input("g", {DType::float32, {1, 2, 2, 2}});
  CHECK_THROWS_AS(conv2d_input_grad(weights, grad, {4, 4}, {}), UserError);
}

}  // namespace plexaura::testing::conv2d_test
