#include "core/ops/random.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/fast/elementwise/draws.h"
#include "backends/cpu/fast/elementwise/random_loops.h"
#include "core/ops/binary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::random_test {

namespace {

const std::vector<Shape> shapes{{}, {1, 3}, {7, 53}, {2, 5, 17, 19}, {3, 20000}};

std::vector<Tensor> drawn_by(Backend& backend, const TensorType& type, std::int64_t first_sample) {
  Graph graph;
  const std::vector<Node> wanted{uniform(graph, type, -0.3, 0.7), normal(graph, type, 0.25, 3)};
  return Runner(graph, wanted, backend)({}, {.step = 2, .seed = 5, .first_sample = first_sample});
}

}  // namespace

TEST_CASE(
    "uniform values are the bits of the portable kernels, and normal ones close, wherever the batch begins") {
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const Shape& shape : shapes)
    for (const std::int64_t first_sample : {0, 1, 2, 3}) {
      const TensorType type{DType::float32, shape};
      const std::vector<Tensor> here = drawn_by(*fast, type, first_sample);
      const std::vector<Tensor> there = drawn_by(*portable, type, first_sample);
      CHECK(here[0] == there[0]);
      double worst = 0;
      const std::vector<double> a = here[1].to_doubles();
      const std::vector<double> b = there[1].to_doubles();
      for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
      CHECK(worst < 5e-6);  // the values are up to 20
    }
}

TEST_CASE("normal values are right for the first and the last words, and between quarters of a turn") {
  std::uint32_t words[fast::draws_at_once] = {};
  float values[fast::draws_at_once];
  const std::uint32_t radii[] = {0, 1, 0x7fffffffU, 0x80000000U, 0xfffffffeU, 0xffffffffU};
  for (const std::uint32_t radius : radii)
    for (const std::uint32_t quarter : {0U, 1U, 2U, 3U})
      for (const std::uint32_t rest : {0U, 0x10000000U, 0x1fffffffU, 0x20000000U, 0x3fffffffU}) {
        words[0] = radius;
        words[1] = (quarter << 30) + rest;
        fast::normal_loop(words, 0, 1, values);
        const double size = std::sqrt(-2 * std::log((radius + 1.0) * 0x1p-32));
        const double angle = 2 * std::acos(-1.0) * (words[1] * 0x1p-32);
        CAPTURE(radius);
        CAPTURE(words[1]);
        CHECK(std::abs(static_cast<double>(values[0]) - size * std::cos(angle)) <= 4e-7 * size);
        CHECK(std::abs(static_cast<double>(values[1]) - size * std::sin(angle)) <= 4e-7 * size);
      }
}

TEST_CASE("no random values of float32 are left to the portable kernels") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    return {uniform(graph, {dtype, {3, 5}}) + normal(graph, {dtype, {3, 5}})};
  });
  CHECK_FALSE(result.uses("portable"));
}

}  // namespace plexaura::testing::random_test
