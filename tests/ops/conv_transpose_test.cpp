#include "core/ops/conv_transpose.h"

#include <doctest/doctest.h>

#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/convolution.h"

namespace plexaura::testing::conv_transpose_test {

namespace {

using reference::Index;

struct Transposed {
  Index stride;
  Index padding;
  Index padding_end;
  Index dilation;
  Index output_padding;
  std::int64_t groups = 1;
};

// Adds a copy of the kernel for each element of x.
Tensor expected_transpose(const Tensor& x, const Tensor& weights, const Transposed& of) {
  Index extents{x.shape()[0], weights.shape()[1] * of.groups};
  for (std::size_t i = 0; i < of.stride.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i) + 2;
    extents.push_back((x.shape()[axis] - 1) * of.stride[i] - of.padding[i] - of.padding_end[i] +
                      of.dilation[i] * (weights.shape()[axis] - 1) + 1 + of.output_padding[i]);
  }
  Tensor y = reference::zeros(Shape(extents));
  const std::int64_t channels = x.shape()[1] / of.groups;
  reference::for_each_index(x.shape(), [&](const Index& from) {
    reference::for_each_index(weights.shape(), [&](const Index& tap) {
      if (tap[0] != from[1]) return;
      Index to{from[0], from[1] / channels * weights.shape()[1] + tap[1]};
      for (std::size_t i = 0; i < of.stride.size(); ++i) {
        to.push_back(from[i + 2] * of.stride[i] - of.padding[i] + tap[i + 2] * of.dilation[i]);
        if (to.back() < 0 || to.back() >= extents[i + 2]) return;
      }
      reference::at(y, to) += reference::at(x, from) * reference::at(weights, tap);
    });
  });
  return y;
}

Index numbers(std::int64_t one) { return {one}; }
Index numbers(Size2d size) { return reference::index_of(size); }
Index numbers(Size3d size) { return reference::index_of(size); }

template <class Options>
Transposed transposed_of(const Options& options) {
  return {numbers(options.stride),
          numbers(options.padding),
          numbers(options.padding_end.value_or(options.padding)),
          numbers(options.dilation),
          numbers(options.output_padding),
          options.groups};
}

template <class Options>
OpCase transposed(const std::string& op, const std::string& name, Node (*build)(Operand, Operand, Options),
                  Shape x, Shape weights, Options options) {
  return {name,
          op,
          [=](Graph&, auto in) { return std::vector{build(in[0], in[1], options)}; },
          {{std::move(x)}, {std::move(weights)}},
          [=](auto in) { return std::vector{expected_transpose(in[0], in[1], transposed_of(options))}; }};
}

OpCase transposed_1d(const std::string& name, Shape x, Shape weights, ConvTranspose1dOptions options) {
  return transposed("conv2d_input_grad", "conv_transpose1d, " + name, conv_transpose1d, std::move(x),
                    std::move(weights), options);
}

OpCase transposed_2d(const std::string& name, Shape x, Shape weights, ConvTranspose2dOptions options) {
  return transposed("conv2d_input_grad", "conv_transpose2d, " + name, conv_transpose2d, std::move(x),
                    std::move(weights), options);
}

OpCase transposed_3d(const std::string& name, Shape x, Shape weights, ConvTranspose3dOptions options) {
  return transposed("conv3d_input_grad", "conv_transpose3d, " + name, conv_transpose3d, std::move(x),
                    std::move(weights), options);
}

const Cases cases({
    transposed_1d("plain", {2, 3, 4}, {3, 2, 3}, {}),
    transposed_1d("stride 3, output padding", {1, 2, 4}, {2, 1, 3},
                  {.stride = 3, .padding = 1, .output_padding = 2}),
    transposed_1d("unequal padding", {1, 2, 4}, {2, 1, 3}, {.padding = 1, .padding_end = 0}),
    transposed_2d("plain", {2, 3, 3, 2}, {3, 2, 2, 3}, {}),
    transposed_2d("doubles images", {1, 4, 3, 3}, {4, 2, 3, 3},
                  {.stride = 2, .padding = 1, .output_padding = 1}),
    transposed_2d("two groups, dilation, unequal padding", {1, 4, 3, 4}, {4, 1, 2, 3},
                  {.stride = {2, 1},
                   .padding = {1, 0},
                   .dilation = {2, 1},
                   .groups = 2,
                   .output_padding = {1, 0},
                   .padding_end = Size2d{0, 2}}),
    transposed_3d("doubles volumes", {1, 2, 2, 2, 3}, {2, 1, 2, 2, 2}, {.stride = 2}),
    transposed_3d("odd", {1, 2, 2, 3, 2}, {2, 2, 2, 1, 3},
                  {.stride = {1, 2, 3}, .padding = {0, 0, 1}, .output_padding = {0, 1, 2}}),
    transposed_3d("dilation, unequal padding", {1, 2, 3, 2, 2}, {2, 1, 2, 2, 2},
                  {.padding = {1, 0, 1}, .dilation = {1, 2, 1}, .padding_end = Size3d{0, 1, 0}}),
});

using Extents = std::vector<std::int64_t>;

WrongCase refused(const std::string& name, Extents x, Extents weights, ConvTranspose2dOptions options,
                  std::vector<std::string> words) {
  return {"conv_transpose2d, " + name, "conv_transpose2d",
          [=](Graph& graph) {
            conv_transpose2d(graph.input("x", {DType::float32, Shape(x)}),
                             graph.input("w", {DType::float32, Shape(weights)}), options);
          },
          std::move(words)};
}

const WrongCases wrong({
    refused("three axes", {1, 2, 3}, {2, 1, 2}, {}, {"need 4 axes, the last ones HW"}),
    refused("output padding of a stride", {1, 2, 3, 3}, {2, 1, 2, 2}, {.stride = 2, .output_padding = {0, 2}},
            {"output_padding must be 0 or more and less than the stride, 2; it is 2"}),
    refused("nothing left", {1, 2, 3, 3}, {2, 1, 2, 2}, {.padding = {0, 2}},
            {"nothing is left along W", "less padding"}),
    refused("no dilation", {1, 2, 3, 3}, {2, 1, 2, 2}, {.dilation = {1, 0}}, {"dilation must be 1 or more"}),
    refused("a negative padding at the end", {1, 2, 3, 3}, {2, 1, 2, 2}, {.padding_end = Size2d{-1, 0}},
            {"padding at the end must be 0 or more (here -1 x 0)"}),
    {"conv_transpose2d, channels",
     "conv2d_input_grad",
     [](Graph& graph) {
       conv_transpose2d(graph.input("x", {DType::float32, {1, 3, 4, 4}}),
                        graph.input("w", {DType::float32, {2, 1, 2, 2}}));
     },
     {"the gradient has 3 channels and the weights give 2"}},
    {"conv_transpose1d of images",
     "conv_transpose1d",
     [](Graph& graph) {
       conv_transpose1d(graph.input("x", {DType::float32, {1, 2, 4, 4}}),
                        graph.input("w", {DType::float32, {2, 1, 2}}));
     },
     {"need 3 axes, the last one L"}},
    {"conv_transpose3d, a bias of the input's channels",
     "conv_transpose3d",
     [](Graph& graph) {
       conv_transpose3d(graph.input("x", {DType::float32, {1, 2, 3, 3, 3}}),
                        graph.input("w", {DType::float32, {2, 1, 2, 2, 2}}),
                        graph.input("b", {DType::float32, {2}}));
     },
     {"bias must have one element for each of the 1 output channels"}},
});

}  // namespace

TEST_CASE("conv_transpose: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("conv_transpose: what it refuses") { check_all(wrong); }

TEST_CASE("a bias of a transposed convolution has an element for each output channel") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 1, 1, 1}});
  const Node weights = graph.input("w", {DType::float64, {1, 2, 1, 1}});
  const Node bias = graph.input("b", {DType::float64, {2}});
  const auto results = Runner(graph, {conv_transpose2d(x, weights, bias)}, test_backend())(
      {Tensor::of<double>({1, 1, 1, 1}, {1}), Tensor::of<double>({1, 2, 1, 1}, {10, 20}),
       Tensor::of<double>({2}, {1, 2})});
  check_close(results[0], {11, 22});
}

TEST_CASE("transposed convolutions by hand, with a bias") {
  Graph graph;
  const Node line = graph.input("l", {DType::float64, {1, 1, 2}});
  const Node kernel = graph.input("k", {DType::float64, {1, 1, 2}});
  const Node bias = graph.input("b", {DType::float64, {1}});
  const Node square = graph.input("s", {DType::float64, {1, 1, 1, 1}});
  const Node cube = graph.input("c", {DType::float64, {1, 1, 1, 1, 1}});
  const auto results =
      Runner(graph,
             {conv_transpose1d(line, kernel, bias, {.stride = 3, .output_padding = 1}),
              conv_transpose2d(square, square, bias), conv_transpose3d(cube, cube, bias)},
             test_backend())({Tensor::of<double>({1, 1, 2}, {1, 2}), Tensor::of<double>({1, 1, 2}, {1, 10}),
                              Tensor::of<double>({1}, {0.5}), Tensor::of<double>({1, 1, 1, 1}, {3}),
                              Tensor::of<double>({1, 1, 1, 1, 1}, {4})});
  check_close(results[0], {1.5, 10.5, 0.5, 2.5, 20.5, 0.5});
  check_close(results[1], {9.5});
  check_close(results[2], {16.5});
}

}  // namespace plexaura::testing::conv_transpose_test
