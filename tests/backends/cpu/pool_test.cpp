#include <doctest/doctest.h>

#include "core/ops/pool2d.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/backend.h"

namespace plexaura::testing::pool_test {

namespace {

const std::vector<MaxPool2dOptions> windows{{.kernel = {3, 3}, .stride = Size2d{2, 2}, .padding = {1, 1}},
                                            {.kernel = {2, 2}},
                                            {.kernel = {3, 2}, .stride = Size2d{1, 3}, .padding = {0, 1}},
                                            {.kernel = {5, 5}, .stride = Size2d{1, 1}, .padding = {2, 2}}};

struct Elements {
  DType dtype;
  double bound;  // of the error of a sum of at most 25 terms
};
constexpr Elements both_types[] = {{DType::float32, 5e-7}, {DType::float64, bound_of_doubles}};

}  // namespace

TEST_CASE("max pooling and its gradient agree with the portable kernels and leave zeros in the padding") {
  for (const Elements& elements : both_types)
    for (const std::int64_t channels : {1, 3, 16, 17})
      for (const Layout& layout :
           {Layout::row_major(4), channels_last(), blocked_channels(16), blocked_channels(8)})
        for (const MaxPool2dOptions& window : windows) {
          CAPTURE(to_string(layout));
          const Shape shape{2, channels, 9, 11};
          const BuildGraph forward = [&](Graph& graph, DType dtype) -> std::vector<Node> {
            return {max_pool2d(graph.input("x", {dtype, shape}), window)};
          };
          const Agreement largest = agreement_of_node(forward, {layout}, {.dtype = elements.dtype});
          CHECK(largest.program == "fast");
          CHECK(largest.worst() == 0);
          Graph shapes;
          const Shape pooled = forward(shapes, DType::float32)[0].shape();
          const Agreement backward = agreement_of_node(
              [&](Graph& graph, DType dtype) -> std::vector<Node> {
                return {max_pool2d_grad(graph.input("grad", {dtype, pooled}),
                                        graph.input("index", {DType::uint8, pooled}), {9, 11}, window)};
              },
              {layout, layout}, {.labels = window.kernel.h * window.kernel.w, .dtype = elements.dtype});
          CHECK(backward.program == "fast");
          CHECK(backward.worst() < elements.bound);
        }
}

TEST_CASE("average pooling and its gradient agree with the portable kernels in double") {
  for (const Elements& elements : both_types)
    for (const std::int64_t channels : {1, 3, 8, 12, 16, 17, 24})
      for (const Layout& layout :
           {Layout::row_major(4), channels_last(), blocked_channels(16), blocked_channels(8)})
        for (const MaxPool2dOptions& window : windows)
          for (const bool count_include_pad : {false, true}) {
            CAPTURE(to_string(layout));
            const AvgPool2dOptions options{window.kernel, window.stride, window.padding, count_include_pad};
            const BuildGraph forward = [&](Graph& graph, DType dtype) -> std::vector<Node> {
              return {avg_pool2d(graph.input("x", {dtype, {2, channels, 9, 11}}), options)};
            };
            const Agreement pooled = agreement_of_node(forward, {layout}, {.dtype = elements.dtype});
            CHECK(pooled.program == "fast");
            CHECK(pooled.worst() < elements.bound);
            Graph shapes;
            const Shape shape = forward(shapes, DType::float32)[0].shape();
            const Agreement backward = agreement_of_node(
                [&](Graph& graph, DType dtype) -> std::vector<Node> {
                  return {avg_pool2d_grad(graph.input("grad", {dtype, shape}), {9, 11}, options)};
                },
                {layout}, {.dtype = elements.dtype});
            CHECK(backward.program == "fast");
            CHECK(backward.worst() < elements.bound);
          }
}

TEST_CASE("pools of doubles keep denormals") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 8, 2, 2}});
  const auto results = Runner(graph, {max_pool2d(x, {.kernel = {2, 2}}), avg_pool2d(x, {.kernel = {2, 2}})},
                              test_backend())({Tensor::of<double>({1, 8, 2, 2}, std::vector(32, 1e-310))});
  for (const Tensor& result : results)
    for (const double element : result.to_doubles()) CHECK(element == 1e-310);
}

TEST_CASE("equal elements and NaN are treated as the portable kernel does") {
  const Agreement equal = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node y = max_pool2d(relu(graph.input("x", {dtype, {2, 16, 8, 8}})), {.kernel = {2, 2}});
    return {y, Node(graph, {y.id(), 1})};
  });
  CHECK(equal.uses("fast"));
  CHECK(equal.worst() == 0);
  const Agreement nan = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node y =
        max_pool2d(log(graph.input("x", {dtype, {2, 16, 8, 8}})), {.kernel = {3, 3}, .padding = {1, 1}});
    return {Node(graph, {y.id(), 1})};
  });
  CHECK(nan.worst() == 0);
}

}  // namespace plexaura::testing::pool_test
