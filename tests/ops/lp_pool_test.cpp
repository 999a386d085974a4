#include "core/ops/lp_pool.h"

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
#include "tests/support/reference/windows.h"

namespace plexaura::testing::lp_pool_test {

namespace {

using reference::Index;

Index numbers(std::int64_t one) { return {one}; }
Index numbers(Size2d size) { return reference::index_of(size); }
Index numbers(Size3d size) { return reference::index_of(size); }

// A window that reaches beyond the input counts as a whole one of elements with the same mean.
template <class Size>
Tensor expected_norms(const Tensor& x, const LpPoolOptions<Size>& options) {
  const Index kernel = numbers(options.kernel);
  double whole = 1;
  for (const std::int64_t extent : kernel) whole *= static_cast<double>(extent);
  const auto windows = reference::windows_of(
      x.shape(),
      {kernel, numbers(options.stride.value_or(options.kernel)), Index(kernel.size()), options.ceil_mode});
  return reference::pooled(x, windows, [&](const std::vector<double>& elements, double size) {
    double sum = 0;
    for (const double element : elements) sum += std::pow(std::abs(element), options.p);
    return std::pow(sum * whole / size, 1 / options.p);
  });
}

template <class Size>
OpCase norms(const std::string& name, const std::string& op, Node (*build)(Operand, LpPoolOptions<Size>),
             Shape x, LpPoolOptions<Size> options) {
  return {name,
          op,
          [=](Graph&, auto in) { return std::vector{build(in[0], options)}; },
          {{std::move(x), away_from_zero(0.3, 1.5)}},
          [=](auto in) { return std::vector{expected_norms(in[0], options)}; },
          true,
          true,
          {DType::float64, DType::float32}};
}

const Cases cases({
    norms("lp_pool1d", "avg_pool2d", lp_pool1d, {2, 2, 6}, LpPool1dOptions{.p = 3, .kernel = 2}),
    norms("lp_pool2d of squares", "avg_pool2d", lp_pool2d, {1, 2, 4, 5},
          LpPool2dOptions{.kernel = {2, 3}, .stride = Size2d{2, 1}}),
    norms("lp_pool2d, the sum of sizes", "avg_pool2d", lp_pool2d, {1, 2, 4, 4},
          LpPool2dOptions{.p = 1, .kernel = 2}),
    norms("lp_pool2d in ceil mode", "avg_pool3d", lp_pool2d, {1, 2, 5, 4},
          LpPool2dOptions{.p = 1.5, .kernel = 2, .ceil_mode = true}),
    norms("lp_pool3d", "avg_pool3d", lp_pool3d, {1, 2, 2, 3, 2},
          LpPool3dOptions{.p = 2.5, .kernel = {1, 2, 2}}),
});

Node x_of(Graph& graph, DType dtype = DType::float32) { return graph.input("x", {dtype, {1, 2, 4, 4}}); }

const WrongCases wrong({
    {"lp_pool2d without p",
     "lp_pool2d",
     [](Graph& graph) { lp_pool2d(x_of(graph), {.p = 0, .kernel = 2}); },
     {"p must be a finite number above 0, not 0"}},
    {"lp_pool2d of integers",
     "lp_pool2d",
     [](Graph& graph) { lp_pool2d(x_of(graph, DType::int32), {.kernel = 2}); },
     {"cast()"}},
});

}  // namespace

TEST_CASE("lp_pool: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("lp_pool: what it refuses") { check_all(wrong); }

TEST_CASE("lp_pool of zeros has the gradient 0") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {1, 1, 2}});
  const auto gradient = [&](double p) { return gradients(sum(lp_pool1d(x, {.p = p, .kernel = 2})), {x})[0]; };
  const auto results = Runner(graph, {gradient(0.5), gradient(1), gradient(2), gradient(3)},
                              test_backend())({Tensor(x.type())});
  for (const Tensor& result : results) check_close(result, {0, 0});
}

}  // namespace plexaura::testing::lp_pool_test
