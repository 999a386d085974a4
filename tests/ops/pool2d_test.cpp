#include "core/ops/pool2d.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/reference.h"
#include "tests/support/reference/windows.h"

namespace plexaura::testing::pool2d_test {

namespace {

constexpr MaxPool2dOptions odd{.kernel = {3, 2}, .stride = Size2d{2, 1}, .padding = {1, 1}};

constexpr AvgPool2dOptions padding_not_counted{
    .kernel = {3, 2}, .stride = Size2d{2, 1}, .padding = {1, 1}, .count_include_pad = false};

template <class Options>
reference::Pool ceil_pool(const Options& options) {
  const Size2d stride = options.stride.value_or(options.kernel);
  return {{options.kernel.h, options.kernel.w},
          {stride.h, stride.w},
          {options.padding.h, options.padding.w},
          true};
}

// Spaced so that bfloat16 keeps all elements apart.
OpCase largest(const std::string& name, Shape x, MaxPool2dOptions options) {
  OpCase op_case{"max_pool2d, " + name,
                 "max_pool2d",
                 [=](Graph&, auto in) { return std::vector{max_pool2d(in[0], options)}; },
                 {{std::move(x), distinct(0.125)}},
                 [=](auto in) { return std::vector{reference::max_pool2d(in[0], options)}; }};
  if (op_case.inputs[0].shape.elements() > 250) op_case.dtypes = {DType::float64, DType::float32};
  return op_case;
}

OpCase average(const std::string& name, Shape x, AvgPool2dOptions options) {
  return {"avg_pool2d, " + name,
          "avg_pool2d",
          [=](Graph&, auto in) { return std::vector{avg_pool2d(in[0], options)}; },
          {{std::move(x)}},
          [=](auto in) { return std::vector{reference::avg_pool2d(in[0], options)}; }};
}

// The windows of these cases do not end where the image ends, so that max_pool3d and avg_pool3d compute them.
OpCase largest_in_ceil_mode(const std::string& name, Shape x, MaxPool2dOptions options) {
  return {"max_pool2d in ceil mode, " + name,
          "max_pool3d",
          [=](Graph&, auto in) { return std::vector{max_pool2d(in[0], options)}; },
          {{std::move(x), distinct(0.125)}},
          [=](auto in) {
            return std::vector{
                reference::pooled(in[0], reference::windows_of(in[0].shape(), ceil_pool(options)),
                                  [](const auto& elements, double) { return reference::largest(elements); })};
          }};
}

OpCase average_in_ceil_mode(const std::string& name, Shape x, AvgPool2dOptions options) {
  return {"avg_pool2d in ceil mode, " + name,
          "avg_pool3d",
          [=](Graph&, auto in) { return std::vector{avg_pool2d(in[0], options)}; },
          {{std::move(x)}},
          [=](auto in) {
            return std::vector{
                reference::pooled(in[0], reference::windows_of(in[0].shape(), ceil_pool(options)),
                                  [&](const auto& elements, double size) {
                                    return options.count_include_pad ? reference::sum(elements) / size
                                                                     : reference::mean(elements);
                                  })};
          }};
}

const Cases cases({
    largest_in_ceil_mode("3 x 3", {1, 3, 6, 5}, {.kernel = 3, .stride = Size2d{2}, .ceil_mode = true}),
    largest_in_ceil_mode("a rest along W", {1, 2, 3, 7}, {.kernel = 3, .ceil_mode = true}),
    average_in_ceil_mode("padded", {2, 2, 6, 5},
                         {.kernel = 3, .stride = Size2d{2}, .padding = 1, .ceil_mode = true}),
    average_in_ceil_mode("padding not counted", {1, 2, 6, 4},
                         {.kernel = {3, 2},
                          .stride = Size2d{2, 3},
                          .padding = 1,
                          .count_include_pad = false,
                          .ceil_mode = true}),
    {"max_pool2d in ceil mode without a rest",
     "max_pool2d",
     [](Graph&, auto in) { return std::vector{max_pool2d(in[0], {.kernel = 2, .ceil_mode = true})}; },
     {{{1, 2, 4, 6}, distinct(0.125)}},
     [](auto in) { return std::vector{reference::max_pool2d(in[0], {.kernel = 2})}; }},
    {"global_avg_pool of volumes",
     "mean",
     [](Graph&, auto in) { return std::vector{global_avg_pool(in[0])}; },
     {{{2, 3, 2, 2, 3}}},
     [](auto in) {
       return std::vector{reference::reduce(in[0], {.axes = {2, 3, 4}}, reference::mean)};
     }},
    largest("2 x 2", {2, 3, 4, 6}, {.kernel = {2, 2}}),
    largest("overlapping, padded", {1, 2, 5, 4}, odd),
    largest("3 x 3, stride 2, as in ResNet", {1, 3, 7, 8},
            {.kernel = {3, 3}, .stride = Size2d{2, 2}, .padding = {1, 1}}),
    largest("17 channels", {1, 17, 4, 5}, {.kernel = {2, 3}, .stride = Size2d{1, 2}}),
    largest("one element", {1, 1, 1, 1}, {.kernel = {1, 1}}),
    largest("no samples", {0, 2, 4, 4}, {.kernel = {2, 2}}),
    {"max_pool2d_grad",
     "max_pool2d_grad",
     [](Graph&, auto in) {
       return std::vector{max_pool2d_grad(in[0], in[1], {4, 6}, {.kernel = {2, 2}})};
     },
     {{{2, 3, 2, 3}}, {{2, 3, 2, 3}, whole(0, 4), DType::uint8}},
     [](auto in) {
       return std::vector{reference::max_pool2d_grad(in[0], in[1], {4, 6}, {.kernel = {2, 2}})};
     }},
    {"max_pool2d_gather",
     "max_pool2d_gather",
     [](Graph&, auto in) {
       return std::vector{max_pool2d_gather(in[0], in[1], {.kernel = {2, 2}})};
     },
     {{{2, 3, 4, 6}}, {{2, 3, 2, 3}, whole(0, 4), DType::uint8}},
     [](auto in) {
       return std::vector{reference::max_pool2d_gather(in[0], in[1], {.kernel = {2, 2}})};
     }},
    average("2 x 2", {2, 3, 4, 6}, {.kernel = {2, 2}}),
    average("overlapping, padding counted", {1, 2, 5, 4},
            {.kernel = {3, 2}, .stride = Size2d{2, 1}, .padding = {1, 1}}),
    average("overlapping, padding not counted", {1, 2, 5, 4}, padding_not_counted),
    average("12 channels, stride 2 that leaves a rest", {1, 12, 5, 6},
            {.kernel = {3, 3}, .stride = Size2d{2, 2}, .padding = {1, 1}}),
    average("17 channels", {1, 17, 3, 4}, {.kernel = {3, 4}}),
    average("no samples", {0, 2, 4, 4}, {.kernel = {2, 2}}),
    {"avg_pool2d_grad",
     "avg_pool2d_grad",
     [](Graph&, auto in) {
       return std::vector{avg_pool2d_grad(in[0], {5, 4}, padding_not_counted)};
     },
     {{{1, 2, 3, 5}}},
     [](auto in) {
       return std::vector{reference::avg_pool2d_grad(in[0], {5, 4}, padding_not_counted)};
     }},
});

Node x_of(Graph& graph, Shape shape) { return graph.input("x", {DType::float32, std::move(shape)}); }

const WrongCases wrong({
    {"max_pool2d, a large window",
     "max_pool2d",
     [](Graph& graph) {
       max_pool2d(x_of(graph, {1, 1, 32, 32}), {.kernel = {16, 16}});
     },
     {"at most 255", "16 x 16", "two steps"}},
    {"max_pool2d, too much padding",
     "max_pool2d",
     [](Graph& graph) {
       max_pool2d(x_of(graph, {1, 1, 8, 8}), {.kernel = {2, 2}, .padding = {2, 0}});
     },
     {"half the kernel"}},
    {"max_pool2d, a row more padding than half the kernel",
     "max_pool2d",
     [](Graph& graph) {
       max_pool2d(x_of(graph, {1, 1, 8, 8}), {.kernel = {3, 3}, .padding = {2, 1}});
     },
     {"half the kernel"}},
    {"avg_pool2d, a column more padding than half the kernel",
     "avg_pool2d",
     [](Graph& graph) {
       avg_pool2d(x_of(graph, {1, 1, 8, 8}), {.kernel = {3, 3}, .padding = {1, 2}});
     },
     {"half the kernel"}},
    {"max_pool2d_grad, another shape",
     "max_pool2d_grad",
     [](Graph& graph) {
       max_pool2d_grad(x_of(graph, {1, 1, 4, 4}), graph.input("i", {DType::uint8, {1, 1, 4, 4}}), {9, 9},
                       {.kernel = {3, 3}});
     },
     {"3 x 3"}},
    {"max_pool2d_grad, an index of another shape",
     "max_pool2d_grad",
     [](Graph& graph) {
       max_pool2d_grad(x_of(graph, {1, 1, 2, 2}), graph.input("i", {DType::uint8, {1, 1, 4, 4}}), {4, 4},
                       {.kernel = {2, 2}});
     },
     {"uint8", "[1,1,2,2]"}},
    {"max_pool2d_gather, an index of floats",
     "max_pool2d_gather",
     [](Graph& graph) {
       max_pool2d_gather(x_of(graph, {1, 1, 4, 4}), graph.input("i", {DType::float32, {1, 1, 2, 2}}),
                         {.kernel = {2, 2}});
     },
     {"uint8", "[1,1,2,2]"}},
    {"avg_pool2d, a window that does not fit",
     "avg_pool2d",
     [](Graph& graph) {
       avg_pool2d(x_of(graph, {1, 1, 4, 2}), {.kernel = {3, 3}});
     },
     {"along W", "padded input has 2"}},
    {"max_pool2d of no rows",
     "max_pool2d",
     [](Graph& graph) {
       max_pool2d(x_of(graph, {1, 1, 0, 4}), {.kernel = {2, 2}, .padding = {1, 1}});
     },
     {"height and a width of 1 or more", "0 x 4"}},
    {"max_pool2d of no columns",
     "max_pool2d",
     [](Graph& graph) {
       max_pool2d(x_of(graph, {1, 1, 4, 0}), {.kernel = {2, 2}, .padding = {1, 1}});
     },
     {"height and a width of 1 or more", "4 x 0"}},
    {"avg_pool2d of no rows",
     "avg_pool2d",
     [](Graph& graph) {
       avg_pool2d(x_of(graph, {1, 1, 0, 4}), {.kernel = {2, 2}, .padding = {1, 1}});
     },
     {"height and a width of 1 or more", "0 x 4"}},
    {"avg_pool2d_grad to no columns",
     "avg_pool2d_grad",
     [](Graph& graph) {
       avg_pool2d_grad(x_of(graph, {1, 1, 3, 1}), {4, 0}, {.kernel = {2, 2}, .padding = {1, 1}});
     },
     {"height and a width of 1 or more", "4 x 0"}},
    {"max_pool2d_grad to no rows",
     "max_pool2d_grad",
     [](Graph& graph) {
       max_pool2d_grad(x_of(graph, {1, 1, 1, 3}), graph.input("i", {DType::uint8, {1, 1, 1, 3}}), {0, 4},
                       {.kernel = {2, 2}, .padding = {1, 1}});
     },
     {"height and a width of 1 or more", "0 x 4"}},
    {"max_pool2d_gather of no rows",
     "max_pool2d_gather",
     [](Graph& graph) {
       max_pool2d_gather(x_of(graph, {1, 1, 0, 4}), graph.input("i", {DType::uint8, {1, 1, 1, 3}}),
                         {.kernel = {2, 2}, .padding = {1, 1}});
     },
     {"height and a width of 1 or more", "0 x 4"}},
    {"max_pool2d_grad in ceil mode",
     "max_pool2d_grad",
     [](Graph& graph) {
       max_pool2d_grad(x_of(graph, {1, 1, 1, 1}), graph.input("i", {DType::uint8, {1, 1, 1, 1}}), 2,
                       {.kernel = 2, .ceil_mode = true});
     },
     {"has no ceil mode"}},
    {"max_pool2d_gather in ceil mode",
     "max_pool2d_gather",
     [](Graph& graph) {
       max_pool2d_gather(x_of(graph, {1, 1, 2, 2}), graph.input("i", {DType::uint8, {1, 1, 1, 1}}),
                         {.kernel = 2, .ceil_mode = true});
     },
     {"has no ceil mode"}},
    {"avg_pool2d_grad in ceil mode",
     "avg_pool2d_grad",
     [](Graph& graph) {
       avg_pool2d_grad(x_of(graph, {1, 1, 1, 1}), 2, {.kernel = 2, .ceil_mode = true});
     },
     {"has no ceil mode"}},
    {"max_pool2d in ceil mode, no stride",
     "max_pool2d",
     [](Graph& graph) {
       max_pool2d(x_of(graph, {1, 1, 4, 4}), {.kernel = 2, .stride = Size2d{0, 1}, .ceil_mode = true});
     },
     {"stride must be 1 or more (here 0 x 1)"}},
    {"global_avg_pool of rows",
     "global_avg_pool",
     [](Graph& graph) {
       global_avg_pool(x_of(graph, {2, 3}));
     },
     {"at least one more"}},
    {"avg_pool2d_grad, another shape",
     "avg_pool2d_grad",
     [](Graph& graph) {
       avg_pool2d_grad(x_of(graph, {1, 1, 4, 4}), {9, 9}, {.kernel = {3, 3}});
     },
     {"3 x 3"}},
});

}  // namespace

TEST_CASE("pooling: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("pooling: what it refuses") { check_all(wrong); }

TEST_CASE("max_pool2d: the first of several largest wins, and a NaN is not lost") {
  Graph graph;
  const Node x = x_of(graph, {1, 1, 2, 6});
  const Node y = max_pool2d(x, {.kernel = {2, 2}});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto results = Runner(graph, {y, output_of(y, 1)},
                              test_backend())({Tensor::of<float>({1, 1, 2, 6}, {1, 5, 7, 7, 1, 2,  //
                                                                                5, 5, 7, 7, nan, 3})});
  const std::vector<double> values = results[0].to_doubles();
  CHECK(values[0] == 5);
  CHECK(values[1] == 7);
  CHECK(std::isnan(values[2]));
  CHECK(results[1] == Tensor::of<std::uint8_t>({1, 1, 1, 3}, {1, 0, 2}));
}

TEST_CASE("one number makes a square window") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 1, 2, 4}});
  const auto results = Runner(graph, {max_pool2d(x, 2), avg_pool2d(x, 2)},
                              test_backend())({Tensor::of<double>({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})});
  CHECK(results[0].to_doubles() == std::vector<double>{6, 8});
  CHECK(results[1].to_doubles() == std::vector<double>{3.5, 5.5});
}

TEST_CASE("pooling by hand") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 1, 3, 3}});
  const Node largest = max_pool2d(x, {.kernel = {2, 2}, .stride = Size2d{1, 1}});
  const Node padded = avg_pool2d(x, {.kernel = {2, 2}, .stride = Size2d{2, 2}, .padding = {1, 1}});
  const auto results =
      Runner(graph, {largest, gradients(sum(largest), {x})[0], padded, gradients(sum(padded), {x})[0]},
             test_backend())({Tensor::of<double>({1, 1, 3, 3}, {1, 2, 3,  //
                                                                8, 9, 4,  //
                                                                7, 6, 5})});
  check_close(results[0], {9, 9, 9, 9});
  check_close(results[1], {0, 0, 0,  //
                           0, 4, 0,  //
                           0, 0, 0});
  check_close(results[2], {1 / 4., (2 + 3) / 4., (8 + 7) / 4., (9 + 4 + 6 + 5) / 4.});
  check_close(results[3], std::vector<double>(9, 1 / 4.));
}

TEST_CASE("pooling agrees with figures of PyTorch") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 1, 5, 4}});
  const Node outside = avg_pool2d(
      x, {.kernel = {3, 2}, .stride = Size2d{2, 2}, .padding = {1, 1}, .count_include_pad = false});
  const Node inside = avg_pool2d(x, {.kernel = {3, 2}, .stride = Size2d{2, 2}, .padding = {1, 1}});
  const Node most = max_pool2d(x, {.kernel = {3, 2}, .stride = Size2d{2, 2}, .padding = {1, 1}});
  const Node grad = gradients(sum(most), {x})[0];
  const auto results =
      Runner(graph, {outside, inside, most, grad}, test_backend())({pattern(x.shape(), 5, 1, 13, 6, 8)});
  check_close(results[0], {-0.1875, -0.0625, 0.0625, 0.125 / 3, -0.3125 / 3, 0.875 / 3, 0, -0.28125, 0.25});
  check_close(results[1],
              {-0.0625, -0.125 / 3, 0.0625 / 3, 0.0625 / 3, -0.3125 / 3, 0.4375 / 3, 0, -0.1875, 0.25 / 3});
  check_close(results[2], {0.25, 0.625, 0.5, 0.375, 0.75, 0.625, 0.375, 0.25, 0.625});
  check_close(results[3], {0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 2, 0, 0, 2, 0, 1, 0, 0});
}

TEST_CASE("average pooling averages, and global average pooling has a gradient") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 2, 2, 2}});
  const Node pooled = avg_pool2d(x, {.kernel = {2, 2}});
  const Node grad = gradients(sum(global_avg_pool(x)), {x})[0];
  const auto results = Runner(graph, {pooled, grad}, test_backend())(
      {Tensor::of<double>({1, 2, 2, 2}, {1, 2, 3, 6, -1, -2, -3, -6})});
  check_close(results[0], {3, -3});
  check_close(results[1], std::vector<double>(8, 0.25));
}

TEST_CASE("a gradient of pooling has four axes") {
  Graph graph;
  const Node five_axes = graph.input("g", {DType::float32, {1, 1, 2, 2, 7}});
  CHECK_THROWS_AS(avg_pool2d_grad(five_axes, {4, 4}, {.kernel = {2, 2}}), UserError);
}

}  // namespace plexaura::testing::pool2d_test
