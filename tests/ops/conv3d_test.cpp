#include "core/ops/conv3d.h"

#include <doctest/doctest.h>

#include "tests/support/cases.h"
#include "tests/support/reference/convolution.h"

namespace plexaura::testing::conv3d_test {

namespace {

OpCase convolved(const std::string& name, Shape x, Shape weights, Conv3dOptions options, bool bias = false) {
  OpCase op_case{
      "conv3d, " + name,
      "conv3d",
      [=](Graph&, auto in) {
        return std::vector{bias ? conv3d(in[0], in[1], in[2], options) : conv3d(in[0], in[1], options)};
      },
      {{std::move(x)}, {weights}},
      [=](auto in) {
        const Tensor y = reference::convolve(in[0], in[1], reference::convolution_of(options));
        return std::vector{bias ? reference::add_bias(y, in[2]) : y};
      }};
  if (bias) op_case.inputs.push_back({{weights[0]}});
  return op_case;
}

constexpr Conv3dOptions odd{
    .stride = {1, 2, 1}, .padding = {1, 0, 2}, .dilation = {2, 1, 1}, .padding_end = Size3d{0, 1, 1}};

const Cases cases({
    convolved("plain", {2, 2, 3, 3, 4}, {3, 2, 2, 2, 3}, {}),
    convolved("bias, odd strides, padding and dilation", {1, 2, 3, 4, 3}, {2, 2, 2, 3, 2}, odd, true),
    convolved("two groups", {1, 4, 2, 3, 2}, {2, 2, 1, 2, 2}, {.padding = 1, .groups = 2}),
    convolved("17 channels", {1, 17, 2, 2, 2}, {2, 17, 2, 2, 1}, {}),
    convolved("no samples", {0, 1, 2, 2, 2}, {1, 1, 2, 2, 2}, {}),
    {"conv3d_input_grad",
     "conv3d_input_grad",
     [](Graph&, auto in) {
       return std::vector{conv3d_input_grad(in[0], in[1], {3, 4, 3}, odd)};
     },
     {{{2, 1, 2, 3, 2}}, {{1, 2, 2, 2, 5}}},
     [](auto in) {
       return std::vector{
           reference::convolution_input_grad(in[0], in[1], {3, 4, 3}, reference::convolution_of(odd))};
     }},
    {"conv3d_weight_grad",
     "conv3d_weight_grad",
     [](Graph&, auto in) {
       return std::vector{conv3d_weight_grad(in[0], in[1], {2, 3, 2}, odd)};
     },
     {{{2, 1, 3, 4, 3}}, {{2, 2, 2, 2, 5}}},
     [](auto in) {
       return std::vector{
           reference::convolution_weight_grad(in[0], in[1], {2, 3, 2}, reference::convolution_of(odd))};
     }},
});

Node x_of(Graph& graph, Shape shape) { return graph.input("x", {DType::float32, std::move(shape)}); }
Node w_of(Graph& graph, Shape shape) { return graph.input("w", {DType::float32, std::move(shape)}); }

const WrongCases wrong({
    {"conv3d, four axes",
     "conv3d",
     [](Graph& graph) {
       conv3d(x_of(graph, {1, 2, 4, 4}), w_of(graph, {1, 2, 3, 3}));
     },
     {"N, C, D, H and W", "here 4 axes"}},
    {"conv3d, a kernel that does not fit",
     "conv3d",
     [](Graph& graph) {
       conv3d(x_of(graph, {1, 2, 2, 4, 4}), w_of(graph, {1, 2, 3, 3, 3}));
     },
     {"along D the window reaches over 3"}},
    {"conv3d, no stride",
     "conv3d",
     [](Graph& graph) {
       conv3d(x_of(graph, {1, 2, 2, 4, 4}), w_of(graph, {1, 2, 1, 3, 3}), {.stride = {1, 0, 1}});
     },
     {"stride must be 1 or more (here 1 x 0 x 1)"}},
    {"conv3d_input_grad, a gradient of another size",
     "conv3d_input_grad",
     [](Graph& graph) {
       conv3d_input_grad(w_of(graph, {1, 1, 3, 3, 3}), x_of(graph, {1, 1, 5, 5, 5}), {8, 8, 8}, {});
     },
     {"6 x 6 x 6"}},
    {"conv3d_weight_grad, other samples",
     "conv3d_weight_grad",
     [](Graph& graph) {
       conv3d_weight_grad(x_of(graph, {2, 1, 3, 3, 3}), w_of(graph, {1, 1, 3, 3, 3}), 1, {});
     },
     {"same number of samples"}},
});

}  // namespace

TEST_CASE("conv3d: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("conv3d: what it refuses") { check_all(wrong); }

}  // namespace plexaura::testing::conv3d_test
