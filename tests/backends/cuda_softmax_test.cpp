// Tests the kernels of softmax and log_softmax for CUDA (backends/cuda/kernels/softmax.cu) on the simulated
// runtime.

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "core/ops/softmax.h"
#include "testing/run.h"
#include "tests/support/has_simulated_cuda.h"
#include "tests/support/pattern.h"
#include "tests/support/simulated_widths.h"

namespace plexaura::testing::cuda_softmax_test {

namespace {

struct Both {
  std::vector<Tensor> found;
  std::vector<Tensor> expected;
};

// Computes softmax and log_softmax on simulated CUDA and by the portable kernels.
Both run(const Tensor& x, std::int64_t axis = -1) {
  Graph graph;
  const Node node = graph.input("x", x.type());
  const std::vector<Node> results{softmax(node, axis), log_softmax(node, axis)};
  return {Runner(graph, results, *open_backend("simulated_cuda"))({x}),
          Runner(graph, results, *open_backend("portable"))({x})};
}

// Checks that each element of the softmax has a relative error below the tolerance. Numbers below the normal ones of
// float16 may differ by their distance.
void check_close_to(const Tensor& x, std::int64_t axis, double tolerance) {
  const auto [found, expected] = run(x, axis);
  const std::vector<double> a = found[0].to_doubles();
  const std::vector<double> b = expected[0].to_doubles();
  REQUIRE(a.size() == b.size());
  const double spacing = x.dtype() == DType::float16 ? 0x1p-24 : 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(a[i] - b[i]) <= tolerance * b[i] + spacing);
  }
  check_close(found[1], expected[1].to_doubles(), tolerance);
}

}  // namespace

TEST_CASE("softmax on CUDA agrees with the portable kernels") {
  if (!has_simulated_cuda()) return;
  struct Case {
    DType dtype;
    double tolerance;
  };
  // 16 bits: the result is rounded in one of two ways.
  for (const auto& [dtype, tolerance] : {Case{DType::float64, 1e-13}, Case{DType::float32, 1e-6},
                                         Case{DType::bfloat16, 0x1p-7}, Case{DType::float16, 0x1p-10}})
    for (const Shape& shape : {Shape{3, 1}, Shape{300, 3}, Shape{5, 8}, Shape{9, 64}, Shape{7, 1000},
                               Shape{2, 8200}, Shape{2, 2051}}) {
      CAPTURE(name_of(dtype));
      CAPTURE(to_string(shape));
      check_close_to(pattern(shape, 7, 3, 31, 15, 2).cast(dtype), -1, tolerance);
      check_close_to(pattern(shape, 7, 3, 31, 15, 2).cast(dtype), 0, tolerance);
    }
}

TEST_CASE("softmax on CUDA adds up many small numbers exactly") {
  if (!has_simulated_cuda()) return;
  Tensor x({DType::float32, {10'000, 2}});
  std::ranges::fill(x.as<float>(), -std::log(10.F));
  x.as<float>()[0] = x.as<float>()[1] = 0;
  check_close_to(x, 0, 1e-6);
}

TEST_CASE("NaN and infinities in a row of softmax on CUDA have the portable kernels' results") {
  if (!has_simulated_cuda()) return;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t classes : {6, 40})
    for (const std::vector<float>& odd : std::vector<std::vector<float>>{
             {nan}, {infinity}, {-infinity}, {infinity, -infinity}, {nan, infinity}, {-infinity, nan}}) {
      Tensor x = pattern({4, classes}).cast(DType::float32);
      const auto row = [&](std::int64_t number) {
        return x.as<float>().subspan(static_cast<std::size_t>(number * classes),
                                     static_cast<std::size_t>(classes));
      };
      std::ranges::copy(odd, row(1).begin());  // at the begin, at the end, everywhere
      std::ranges::copy(odd, row(2).end() - static_cast<std::ptrdiff_t>(odd.size()));
      std::ranges::fill(row(3), odd[0]);
      CAPTURE(odd[0]);
      const auto [found, expected] = run(x);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const auto values = found[i].to_doubles();
        const auto wanted = expected[i].to_doubles();
        for (std::size_t k = 0; k < values.size(); ++k) {
          CAPTURE(k);
          CHECK((std::isnan(wanted[k]) ? std::isnan(values[k])
                                       : values[k] == wanted[k] || std::abs(values[k] - wanted[k]) <= 1e-6));
        }
      }
    }
}

TEST_CASE("a thread reads as many elements of a row of softmax at once as 16 bytes hold") {
  if (!has_simulated_cuda()) return;
  struct Case {
    DType dtype;
    std::int64_t classes;
    int width;
  };
  for (const auto& [dtype, classes, width] :
       {Case{DType::bfloat16, 64, 8}, Case{DType::float16, 8, 8}, Case{DType::bfloat16, 20, 1},
        Case{DType::float32, 20, 4}, Case{DType::float64, 20, 2}, Case{DType::float32, 10, 1}}) {
    CAPTURE(name_of(dtype));
    CAPTURE(classes);
    Graph graph;
    const Node x = graph.input("x", {dtype, {6, classes}});
    CHECK(widths_of(graph, {softmax(x), log_softmax(x)}, {pattern(x.shape()).cast(dtype)}) ==
          std::map<std::string, int>{{"softmax", width}, {"log_softmax", width}});
  }
}

}  // namespace plexaura::testing::cuda_softmax_test
