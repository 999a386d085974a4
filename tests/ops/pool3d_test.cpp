#include "core/ops/pool3d.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/convolution.h"
#include "tests/support/reference/reference.h"
#include "tests/support/reference/windows.h"

namespace plexaura::testing::pool3d_test {

namespace {

using reference::index_of;

template <class Options>
std::vector<reference::WindowsAlongAxis> windows_of(const Shape& x, const Options& options) {
  return reference::windows_of(x,
                               {index_of(options.kernel), index_of(options.stride.value_or(options.kernel)),
                                index_of(options.padding), options.ceil_mode});
}

double largest_of(const std::vector<double>& elements, double) { return reference::largest(elements); }
double mean_of(const std::vector<double>& elements, double) { return reference::mean(elements); }
double mean_with_padding(const std::vector<double>& elements, double size) {
  return reference::sum(elements) / size;
}

OpCase largest(const std::string& name, Shape x, MaxPool3dOptions options) {
  return {"max_pool3d, " + name,
          "max_pool3d",
          [=](Graph&, auto in) { return std::vector{max_pool3d(in[0], options)}; },
          {{std::move(x), distinct(0.125)}},
          [=](auto in) {
            return std::vector{reference::pooled(in[0], windows_of(in[0].shape(), options), largest_of)};
          }};
}

OpCase average(const std::string& name, Shape x, AvgPool3dOptions options) {
  return {"avg_pool3d, " + name,
          "avg_pool3d",
          [=](Graph&, auto in) { return std::vector{avg_pool3d(in[0], options)}; },
          {{std::move(x)}},
          [=](auto in) {
            return std::vector{reference::pooled(in[0], windows_of(in[0].shape(), options),
                                                 options.count_include_pad ? mean_with_padding : mean_of)};
          }};
}

OpCase adaptive(const std::string& name, const std::string& op, Node (*build)(Operand, Size3d), Shape x,
                Size3d output, double (*of)(const std::vector<double>&, double)) {
  return {name,
          op,
          [=](Graph&, auto in) { return std::vector{build(in[0], output)}; },
          {{std::move(x), distinct(0.125)}},
          [=](auto in) {
            return std::vector{
                reference::pooled(in[0], reference::adaptive_windows(in[0].shape(), index_of(output)), of)};
          }};
}

constexpr Pool3dOptions whole_image{.window = {{2, 3, 2}, {2, 3, 2}, 0}, .input = {2, 3, 2}};
constexpr Pool3dOptions overlapping{.window = {{2, 3, 2}, {1, 2, 2}, {1, 1, 0}},
                                    .ceil_mode = true,
                                    .input = {2, 4, 3},
                                    .count_include_pad = false};
constexpr AvgPool3dOptions forward_of_overlapping{.kernel = {2, 3, 2},
                                                  .stride = Size3d{1, 2, 2},
                                                  .padding = {1, 1, 0},
                                                  .count_include_pad = false,
                                                  .ceil_mode = true};

// Returns the gradient of the sum of all means, each of which is multiplied by its element of grad_out.
Tensor expected_avg_grad(const Tensor& grad_out) {
  Tensor x = reference::zeros({1, 2, 2, 4, 3});
  const auto windows = windows_of(x.shape(), forward_of_overlapping);
  reference::for_each_index(grad_out.shape(), [&](const reference::Index& place) {
    const auto window = [&](std::size_t i) { return windows[i][static_cast<std::size_t>(place[i + 2])]; };
    const auto extent = [&](std::size_t i) { return window(i).end - window(i).begin; };
    const auto count = static_cast<double>(extent(0) * extent(1) * extent(2));
    reference::for_each_index(Shape{extent(0), extent(1), extent(2)}, [&](const reference::Index& within) {
      reference::at(x, place[0], place[1], window(0).begin + within[0], window(1).begin + within[1],
                    window(2).begin + within[2]) += reference::at(grad_out, place) / count;
    });
  });
  return x;
}

// The window is the whole image.
Tensor expected_gather(const Tensor& x, const Tensor& index) {
  Tensor y = reference::zeros(index.shape());
  for (std::size_t i = 0; i < y.as<double>().size(); ++i)
    y.as<double>()[i] = x.as<double>()[12 * i + static_cast<std::size_t>(index.as<double>()[i])];
  return y;
}

Tensor expected_scatter(const Tensor& grad_out, const Tensor& index) {
  Tensor x = reference::zeros({1, 3, 2, 3, 2});
  for (std::size_t i = 0; i < grad_out.as<double>().size(); ++i)
    x.as<double>()[12 * i + static_cast<std::size_t>(index.as<double>()[i])] = grad_out.as<double>()[i];
  return x;
}

const Cases cases({
    largest("2 x 2 x 2", {2, 2, 2, 4, 2}, {.kernel = 2}),
    largest("overlapping, padded", {1, 2, 3, 4, 3},
            {.kernel = {2, 3, 2}, .stride = Size3d{1, 2, 1}, .padding = {1, 1, 0}}),
    largest("ceil mode", {1, 1, 4, 5, 3},
            {.kernel = {2, 3, 2}, .stride = Size3d{3, 2, 2}, .ceil_mode = true}),
    largest("ceil mode, a window in the padding is left out", {1, 1, 1, 3, 3},
            {.kernel = {1, 2, 2}, .stride = Size3d{1, 3, 2}, .padding = {0, 1, 1}, .ceil_mode = true}),
    largest("ceil mode, a window in the padding along D is left out", {1, 1, 3, 3, 1},
            {.kernel = {2, 2, 1}, .stride = Size3d{3, 2, 1}, .padding = {1, 1, 0}, .ceil_mode = true}),
    largest("no samples", {0, 2, 2, 2, 2}, {.kernel = 2}),
    average("2 x 2 x 2", {1, 17, 2, 2, 2}, {.kernel = 2}),
    average("no samples", {0, 2, 2, 2, 2}, {.kernel = 2}),
    average("overlapping, padding counted", {1, 2, 3, 4, 3},
            {.kernel = {2, 3, 2}, .stride = Size3d{1, 2, 1}, .padding = {1, 1, 0}}),
    average("overlapping, padding not counted, ceil mode", {1, 2, 2, 4, 3}, forward_of_overlapping),
    average("ceil mode beyond the padding", {1, 1, 2, 4, 4},
            {.kernel = {1, 3, 2}, .stride = Size3d{1, 2, 3}, .padding = {0, 1, 1}, .ceil_mode = true}),
    adaptive("adaptive_max_pool3d", "max_pool3d", adaptive_max_pool3d, {1, 2, 3, 5, 2}, {2, 3, 4},
             largest_of),
    adaptive("adaptive_avg_pool3d", "avg_pool3d", adaptive_avg_pool3d, {2, 1, 3, 5, 2}, {2, 3, 4}, mean_of),
    adaptive("adaptive_avg_pool3d to one", "avg_pool3d", adaptive_avg_pool3d, {2, 2, 2, 3, 1}, 1, mean_of),
    {"max_pool3d_grad",
     "max_pool3d_grad",
     [](Graph&, auto in) {
       return std::vector{apply(std::make_shared<MaxPool3dGrad>(whole_image), {in[0], in[1]})};
     },
     {{{1, 3, 1, 1, 1}}, {{1, 3, 1, 1, 1}, whole(0, 12), DType::int64}},
     [](auto in) { return std::vector{expected_scatter(in[0], in[1])}; }},
    {"max_pool3d_gather",
     "max_pool3d_gather",
     [](Graph&, auto in) {
       return std::vector{apply(std::make_shared<MaxPool3dGather>(whole_image), {in[0], in[1]})};
     },
     {{{1, 3, 2, 3, 2}}, {{1, 3, 1, 1, 1}, whole(0, 12), DType::int64}},
     [](auto in) { return std::vector{expected_gather(in[0], in[1])}; }},
    {"avg_pool3d_grad",
     "avg_pool3d_grad",
     [](Graph&, auto in) {
       return std::vector{apply(std::make_shared<AvgPool3dGrad>(overlapping), {in[0]})};
     },
     {{{1, 2, 3, 3, 2}}},
     [](auto in) { return std::vector{expected_avg_grad(in[0])}; }},
});

Node x_of(Graph& graph, Shape shape) { return graph.input("x", {DType::float32, std::move(shape)}); }
Node index_in(Graph& graph, Shape shape) { return graph.input("i", {DType::int32, std::move(shape)}); }

const WrongCases wrong({
    {"max_pool3d, four axes",
     "max_pool3d",
     [](Graph& graph) {
       max_pool3d(x_of(graph, {1, 1, 4, 4}), {.kernel = 2});
     },
     {"N, C, D, H and W"}},
    {"max_pool3d, much padding",
     "max_pool3d",
     [](Graph& graph) {
       max_pool3d(x_of(graph, {1, 1, 4, 4, 4}), {.kernel = 2, .padding = {0, 2, 0}});
     },
     {"at most half the kernel"}},
    {"avg_pool3d of nothing",
     "avg_pool3d",
     [](Graph& graph) {
       avg_pool3d(x_of(graph, {1, 1, 4, 0, 4}), {.kernel = {2, 1, 1}});
     },
     {"extent of 1 or more along each axis (here 4 x 0 x 4)"}},
    {"avg_pool3d in ceil mode, a large kernel",
     "avg_pool3d",
     [](Graph& graph) {
       avg_pool3d(x_of(graph, {1, 1, 4, 4, 4}), {.kernel = 9, .stride = Size3d{1}, .ceil_mode = true});
     },
     {"the window reaches over 9"}},
    {"adaptive_max_pool3d to nothing",
     "max_pool3d",
     [](Graph& graph) {
       adaptive_max_pool3d(x_of(graph, {1, 1, 4, 4, 4}), {1, 1, 0});
     },
     {"output must have an extent of 1 or more along each axis (here 1 x 1 x 0)"}},
    {"max_pool3d_grad, another index",
     "max_pool3d_grad",
     [](Graph& graph) {
       apply(std::make_shared<MaxPool3dGrad>(whole_image),
             {x_of(graph, {1, 1, 1, 1, 1}), index_in(graph, {1, 1, 1, 1, 1})});
     },
     {"the index must be int64 of the pooled shape"}},
    {"max_pool3d_gather, another index",
     "max_pool3d_gather",
     [](Graph& graph) {
       apply(std::make_shared<MaxPool3dGather>(whole_image),
             {x_of(graph, {1, 1, 2, 3, 2}), index_in(graph, {1, 1, 1, 1, 1})});
     },
     {"the index must be int64 of the pooled shape"}},
    {"avg_pool3d_grad, another shape",
     "avg_pool3d_grad",
     [](Graph& graph) {
       apply(std::make_shared<AvgPool3dGrad>(overlapping), {x_of(graph, {1, 1, 3, 3, 3})});
     },
     {"spatial extents of the output, 3 x 3 x 2"}},
});

}  // namespace

TEST_CASE("pool3d: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("pool3d: what it refuses") { check_all(wrong); }

TEST_CASE("max_pool3d: the first of several largest wins, and a NaN is not lost") {
  Graph graph;
  const Node x = x_of(graph, {1, 1, 1, 2, 6});
  const Node y = max_pool3d(x, {.kernel = {1, 2, 2}});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto results = Runner(graph, {y, output_of(y, 1)},
                              test_backend())({Tensor::of<float>({1, 1, 1, 2, 6}, {1, 5, 7, 7, 1, 2,  //
                                                                                   5, 5, 7, 7, nan, 3})});
  const std::vector<double> values = results[0].to_doubles();
  CHECK(values[0] == 5);
  CHECK(values[1] == 7);
  CHECK(std::isnan(values[2]));
  CHECK(results[1] == Tensor::of<std::int64_t>({1, 1, 1, 1, 3}, {1, 2, 10}));
}

TEST_CASE("adaptive pooling by hand") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 1, 1, 1, 5}});
  const Node mean = adaptive_avg_pool3d(x, {1, 1, 3});
  const auto results = Runner(graph, {mean, gradients(sum(mean), {x})[0]},
                              test_backend())({Tensor::of<double>({1, 1, 1, 1, 5}, {1, 3, 5, 8, 20})});
  check_close(results[0], {2, 16 / 3., 14});  // elements 0 and 1, 1 to 3, 3 and 4
  check_close(results[1], {1 / 2., 1 / 2. + 1 / 3., 1 / 3., 1 / 3. + 1 / 2., 1 / 2.});
}

}  // namespace plexaura::testing::pool3d_test
