#include "core/ops/pool3d.h"

#include <cmath>
#include <doctest/doctest.h>
#include <functional>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "core/autodiff/gradients.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::pool3d_kernel_test {

namespace {

using Pool = std::function<Node(const Node& x)>;

std::vector<Node> with_gradient(Graph& graph, DType dtype, const Shape& shape, const Pool& pool) {
  const Node x = graph.input("x", {dtype, shape});
  const Node y = pool(x);
  return {y, vjp(std::vector{y}, std::vector{graph.input("grad", y.type())}, std::vector{x})[0]};
}

Pool largest(MaxPool3dOptions options) {
  return [=](const Node& x) { return max_pool3d(x, options); };
}

Pool average(AvgPool3dOptions options) {
  return [=](const Node& x) { return avg_pool3d(x, options); };
}

struct PoolCase {
  Shape shape;
  Pool pool;
};

std::vector<PoolCase> cases() {
  return {
      {{2, 3, 4, 6, 8}, largest({.kernel = 2})},
      {{1, 2, 5, 7, 9}, largest({.kernel = {3, 2, 3}, .stride = Size3d{1, 2, 2}, .padding = 1})},
      {{2, 1, 4, 5, 20}, largest({.kernel = 3, .stride = Size3d{2}, .ceil_mode = true})},
      {{2, 2, 3, 5, 33},
       [](const Node& x) {
         return adaptive_max_pool3d(x, {2, 3, 7});
       }},
      {{2, 3, 4, 6, 8}, average({.kernel = 2})},
      {{1, 2, 5, 7, 9}, average({.kernel = {3, 2, 3}, .stride = Size3d{1, 2, 2}, .padding = 1})},
      {{1, 2, 5, 7, 9},
       average({.kernel = {3, 2, 3}, .stride = Size3d{2, 1, 2}, .padding = 1, .count_include_pad = false})},
      {{2, 1, 4, 5, 20}, average({.kernel = 3, .stride = Size3d{2}, .padding = 1, .ceil_mode = true})},
      {{2, 2, 3, 5, 33},
       [](const Node& x) {
         return adaptive_avg_pool3d(x, {2, 3, 7});
       }},
      {{1, 1, 1, 2, 1024}, average({.kernel = {1, 2, 5}, .stride = Size3d{1, 1, 3}})}};
}

}  // namespace

TEST_CASE("pools of volumes and their gradients agree with the portable kernels in double") {
  for (const DType dtype : {DType::float32, DType::float64})
    for (const auto& [shape, pool] : cases()) {
      CAPTURE(to_string(shape));
      const Agreement result =
          agreement([&](Graph& graph, DType type) { return with_gradient(graph, type, shape, pool); },
                    {.dtype = dtype});
      CAPTURE(result.program);
      CHECK(result.worst() < (dtype == DType::float64 ? bound_of_doubles : 1e-6));
      CHECK_FALSE(result.uses("portable"));
    }
}

TEST_CASE("the longest row that a pool of volumes takes, and a longer one") {
  for (const std::int64_t width : {1024, 1025}) {
    const Agreement result = agreement([&](Graph& graph, DType dtype) {
      return with_gradient(graph, dtype, {1, 2, 2, 2, width}, largest({.kernel = 2, .stride = Size3d{1}}));
    });
    CHECK(result.worst() < 1e-6);
    CHECK(result.uses("portable") == (width == 1025));
  }
}

TEST_CASE("ties, NaN and infinities in pools of volumes are as in the portable kernels") {
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  const float not_a_number = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [shape, pool] : cases()) {
    CAPTURE(to_string(shape));
    Graph graph;
    const std::vector<Node> results = with_gradient(graph, DType::float32, shape, pool);
    Tensor x = drawn({DType::float32, shape}, "x");
    const std::vector<float> few{1, not_a_number, 0, -1, 1, -infinity, infinity, 0, 1};
    for (std::size_t i = 0; i < x.as<float>().size(); ++i)
      if (const auto kind = static_cast<std::size_t>((x.as<float>()[i] + 1) * 20); kind != 20)
        x.as<float>()[i] = few[kind % 9 == 1 && kind > 20 ? 0 : kind % 9];
    const std::vector<Tensor> values{x, drawn(results[0].type(), "grad")};
    const std::vector<Tensor> found = Runner(graph, results, *fast)(values);
    const std::vector<Tensor> expected = Runner(graph, results, *portable)(values);
    for (std::size_t output = 0; output < 2; ++output)
      for (std::size_t i = 0; i < found[output].as<float>().size(); ++i) {
        const float own = found[output].as<float>()[i];
        const float wanted = expected[output].as<float>()[i];
        CAPTURE(output);
        CAPTURE(i);
        CHECK((own == wanted || (std::isnan(own) && std::isnan(wanted)) || std::abs(own - wanted) < 1e-6F));
      }
  }
}

}  // namespace plexaura::testing::pool3d_kernel_test
