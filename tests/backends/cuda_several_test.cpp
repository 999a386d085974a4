// Tests kernels for CUDA that compute several elements at once (backends/cuda/kernels/several.h), on the simulated
// runtime: their bits are those of the portable kernels, whatever the shapes.

#include <doctest/doctest.h>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/has_simulated_cuda.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::cuda_several_test {

namespace {

// Checks ops of values of two shapes that broadcast.
void check_bits(DType dtype, const Shape& a, const Shape& b) {
  CAPTURE(name_of(dtype));
  CAPTURE(to_string(a));
  CAPTURE(to_string(b));
  Graph graph;
  const Node x = graph.input("x", {dtype, a});
  const Node y = graph.input("y", {dtype, b});
  const Node larger = x > y;
  const std::vector<Node> results{x + y,
                                  x * y,
                                  larger,
                                  where(larger, x, y),
                                  relu(x),
                                  tanh(x),
                                  exp(x),
                                  cast(x, DType::float32),
                                  cast(x, DType::bfloat16)};
  const std::vector<Tensor> inputs{pattern(a).cast(dtype), pattern(b, 1, 2).cast(dtype)};
  const auto run = [&](const char* backend) {
    const auto opened = open_backend(backend, {});
    return Runner(graph, results, *opened, {.optimise = false})(inputs);
  };
  const auto found = run("simulated_cuda");
  const auto expected = run("portable");
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i].to_doubles() == expected[i].to_doubles());
  }
}

}  // namespace

TEST_CASE("elements that a thread computes at once have the bits of single ones") {
  if (!has_simulated_cuda()) return;
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{37}, {37}},            // groups, and elements after them
      {{7}, {7}},              // no group
      {{3, 16}, {16}},         // an operand that is repeated along the first axis
      {{3, 16}, {3, 1}},       // along the last axis
      {{5, 3}, {5, 1}},        // rows that are no whole groups
      {{2, 3, 8}, {2, 1, 8}},  // along an axis between them
      {{41}, {}},              // one number
  };
  for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32, DType::float64})
    for (const auto& [a, b] : shapes) check_bits(dtype, a, b);
}

TEST_CASE("elements are moved at once where both places allow it") {
  if (!has_simulated_cuda()) return;
  for (const DType dtype : {DType::bfloat16, DType::float32, DType::boolean})
    for (const std::int64_t start : {0, 1, 8})
      for (const std::int64_t step : {1, 2}) {
        CAPTURE(start);
        CAPTURE(step);
        Graph graph;
        const Node x = graph.input("x", {dtype, {3, 40}});
        const Node part = slice(x, {.axis = 1, .start = start, .step = step});
        const std::vector<Node> results{part, concat({part, x}, 1), concat({x, x}, 0),
                                        broadcast_to(reshape(x, {3, 1, 40}), {3, 2, 40})};
        const std::vector<Tensor> inputs{pattern({3, 40}).cast(dtype)};
        const auto run = [&](const char* backend) {
          const auto opened = open_backend(backend, {});
          return Runner(graph, results, *opened, {.optimise = false})(inputs);
        };
        const auto found = run("simulated_cuda");
        const auto expected = run("portable");
        for (std::size_t i = 0; i < found.size(); ++i)
          CHECK(found[i].to_doubles() == expected[i].to_doubles());
      }
}

}  // namespace plexaura::testing::cuda_several_test
