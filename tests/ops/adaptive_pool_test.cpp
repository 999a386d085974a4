#include "core/ops/adaptive_pool.h"

#include <doctest/doctest.h>

#include "tests/support/cases.h"
#include "tests/support/reference/convolution.h"
#include "tests/support/reference/reference.h"
#include "tests/support/reference/windows.h"

namespace plexaura::testing::adaptive_pool_test {

namespace {

template <class Size>
OpCase pooled_to(const std::string& name, const std::string& op, Node (*build)(Operand, Size), Shape x,
                 Size output, double (*of)(const std::vector<double>&)) {
  return {name,
          op,
          [=](Graph&, auto in) { return std::vector{build(in[0], output)}; },
          {{std::move(x), distinct(0.125)}},
          [=](auto in) {
            reference::Index extents;
            if constexpr (std::is_same_v<Size, Size2d>)
              extents = reference::index_of(output);
            else
              extents = {output};
            return std::vector{reference::pooled(in[0], reference::adaptive_windows(in[0].shape(), extents),
                                                 [&](const auto& elements, double) { return of(elements); })};
          }};
}

constexpr std::int64_t three = 3;

const Cases cases({
    pooled_to("adaptive_avg_pool2d, equal windows", "avg_pool2d", adaptive_avg_pool2d, {1, 2, 4, 6},
              Size2d{2, 3}, reference::mean),
    pooled_to("adaptive_avg_pool2d, windows of several sizes", "avg_pool3d", adaptive_avg_pool2d,
              {2, 2, 5, 4}, Size2d{3, 2}, reference::mean),
    pooled_to("adaptive_avg_pool2d to more pixels", "avg_pool3d", adaptive_avg_pool2d, {1, 1, 2, 3},
              Size2d{3, 5}, reference::mean),
    pooled_to("adaptive_max_pool2d, equal windows", "max_pool2d", adaptive_max_pool2d, {1, 2, 4, 6},
              Size2d{2, 3}, reference::largest),
    pooled_to("adaptive_max_pool2d, windows of several sizes", "max_pool3d", adaptive_max_pool2d,
              {2, 2, 5, 4}, Size2d{3, 2}, reference::largest),
    pooled_to("adaptive_avg_pool1d", "avg_pool3d", adaptive_avg_pool1d, {2, 2, 7}, three, reference::mean),
    pooled_to("adaptive_max_pool1d", "max_pool2d", adaptive_max_pool1d, {2, 2, 6}, three, reference::largest),
    {"global_max_pool",
     "max",
     [](Graph&, auto in) { return std::vector{global_max_pool(in[0])}; },
     {{{2, 3, 2, 2, 3}, distinct(0.125)}},
     [](auto in) {
       return std::vector{reference::reduce(in[0], {.axes = {2, 3, 4}}, reference::largest)};
     }},
});

Node x_of(Graph& graph, Shape shape) { return graph.input("x", {DType::float32, std::move(shape)}); }

const WrongCases wrong({
    {"adaptive_avg_pool2d, three axes",
     "adaptive_avg_pool2d",
     [](Graph& graph) {
       adaptive_avg_pool2d(x_of(graph, {2, 3, 4}), 1);
     },
     {"N, C, H and W"}},
    {"adaptive_max_pool2d to nothing",
     "adaptive_max_pool2d",
     [](Graph& graph) {
       adaptive_max_pool2d(x_of(graph, {1, 2, 3, 4}), {1, 0});
     },
     {"an extent of 1 or more along each axis (here 1 x 0)"}},
    {"adaptive_avg_pool2d to no rows",
     "adaptive_avg_pool2d",
     [](Graph& graph) {
       adaptive_avg_pool2d(x_of(graph, {1, 2, 3, 4}), {0, 1});
     },
     {"an extent of 1 or more along each axis (here 0 x 1)"}},
    {"adaptive_max_pool1d of images",
     "adaptive_max_pool1d",
     [](Graph& graph) {
       adaptive_max_pool1d(x_of(graph, {1, 2, 3, 4}), 1);
     },
     {"N, C and L"}},
    {"global_max_pool of rows",
     "global_max_pool",
     [](Graph& graph) {
       global_max_pool(x_of(graph, {2, 3}));
     },
     {"at least one more"}},
});

}  // namespace

TEST_CASE("adaptive pooling: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("adaptive pooling: what it refuses") { check_all(wrong); }

// max_pool2d keeps the place of the largest element in 8 bits.
TEST_CASE("adaptive pooling with equal windows is ordinary pooling, up to 255 elements for the maximum") {
  const auto pooled = [](Node (*build)(Operand, Size2d), Shape shape, Size2d output) {
    Graph graph;
    build(x_of(graph, std::move(shape)), output);
    for (NodeId id = 0; id < graph.size(); ++id)
      if (const auto name = graph.record(id).op->name(); name.find("pool") != std::string_view::npos)
        return std::string(name);
    return std::string();
  };
  CHECK(pooled(adaptive_avg_pool2d, {1, 1, 4, 1}, {2, 1}) == "avg_pool2d");
  CHECK(pooled(adaptive_avg_pool2d, {1, 1, 1, 4}, {1, 2}) == "avg_pool2d");
  CHECK(pooled(adaptive_avg_pool2d, {1, 1, 1, 4}, {1, 3}) == "avg_pool3d");
  CHECK(pooled(adaptive_max_pool2d, {1, 1, 255, 2}, {1, 2}) == "max_pool2d");
  CHECK(pooled(adaptive_max_pool2d, {1, 1, 85, 3}, {1, 1}) == "max_pool2d");
  CHECK(pooled(adaptive_max_pool2d, {1, 1, 256, 2}, {1, 2}) == "max_pool3d");
  CHECK(pooled(adaptive_max_pool2d, {1, 1, 86, 3}, {1, 1}) == "max_pool3d");
}

}  // namespace plexaura::testing::adaptive_pool_test
