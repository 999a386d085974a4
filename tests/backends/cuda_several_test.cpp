// Tests kernels for CUDA that compute several elements at once (backends/cuda/kernels/several.h), on the
// simulated runtime: their bits are those of the portable kernels, whatever the shapes.

#include <doctest/doctest.h>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/optimizer_steps.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/has_simulated_cuda.h"
#include "tests/support/pattern.h"
#include "tests/support/simulated_widths.h"

namespace plexaura::testing::cuda_several_test {

namespace {

std::vector<Tensor> run_on(const char* backend, const Graph& graph, const std::vector<Node>& results,
                           const std::vector<Tensor>& inputs) {
  const auto opened = open_backend(backend, {});
  return Runner(graph, results, *opened, {.optimise = false})(inputs);
}

// Returns numbers that are rounded to 16 bits in special ways: ties, denormals, infinity, and both zeros.
Tensor rounded_numbers(const Shape& shape, std::int64_t first = 0) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> numbers{0.0,     -0.0,    1 + 0x1p-8,  1 + 0x3p-8, -1 - 0x1p-11, 1 + 0x3p-11,
                                    0x1p-24, 0x1p-25, -0x1p-133,   0x1p-134,   0x3p-134,     0x1p-149,
                                    65504,   65520,   -0x1.ffp127, infinity,   -infinity,    -2.75};
  Tensor tensor(TensorType{DType::float64, shape});
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.as<double>()[static_cast<std::size_t>(i)] =
        numbers[static_cast<std::size_t>(first + i) % numbers.size()];
  return tensor;
}

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
  for (const std::vector<Tensor>& inputs :
       {std::vector{pattern(a).cast(dtype), pattern(b, 1, 2).cast(dtype)},
        std::vector{rounded_numbers(a).cast(dtype), rounded_numbers(b, 2).cast(dtype)}}) {
    const auto found = run_on("simulated_cuda", graph, results, inputs);
    const auto expected = run_on("portable", graph, results, inputs);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(i);
      CHECK(found[i] == expected[i]);
    }
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
  for (const DType dtype : {DType::bfloat16, DType::float32, DType::boolean, DType::int64})
    for (const std::int64_t start : {0, 1, 8})
      for (const std::int64_t step : {1, 2, -1}) {
        CAPTURE(start);
        CAPTURE(step);
        Graph graph;
        const Node x = graph.input("x", {dtype, {3, 40}});
        const Node part = slice(x, {.axis = 1, .start = start, .step = step});
        const std::vector<Node> results{part, concat({part, x}, 1), concat({x, x}, 0),
                                        broadcast_to(reshape(x, {3, 1, 40}), {3, 2, 40})};
        const std::vector<Tensor> inputs{pattern({3, 40}).cast(dtype)};
        const auto found = run_on("simulated_cuda", graph, results, inputs);
        const auto expected = run_on("portable", graph, results, inputs);
        for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == expected[i]);
      }
}

TEST_CASE("a thread computes as many elements at once as the shapes allow") {
  if (!has_simulated_cuda()) return;
  struct Case {
    Shape a;
    Shape b;
    bool are_wide;
  };
  const std::vector<Case> cases{{{37}, {37}, true},
                                {{3, 16}, {16}, true},
                                {{3, 16}, {3, 1}, true},
                                {{41}, {}, true},
                                {{5, 3}, {5, 1}, false}};
  for (const auto& [dtype, widest] :
       {std::pair{DType::bfloat16, 8}, {DType::float32, 4}, {DType::float64, 2}})
    for (const auto& [a, b, are_wide] : cases) {
      CAPTURE(name_of(dtype));
      CAPTURE(to_string(a));
      CAPTURE(to_string(b));
      Graph graph;
      const Node x = graph.input("x", {dtype, a});
      const Node y = graph.input("y", {dtype, b});
      const Node chosen = graph.input("chosen", {DType::boolean, a});
      const auto widths =
          widths_of(graph, {x + y, where(chosen, x, y), relu(x)},
                    {pattern(a).cast(dtype), pattern(b).cast(dtype), pattern(a).cast(DType::boolean)});
      CHECK(widths == std::map<std::string, int>{{"add", are_wide ? widest : 1},
                                                 {"where", are_wide ? widest : 1},
                                                 {"relu", widest}});
    }
}

TEST_CASE("a thread moves several elements at once if their begin is aligned") {
  if (!has_simulated_cuda()) return;
  for (const std::int64_t start : {0, 3, 8, 12}) {
    CAPTURE(start);
    Graph graph;
    const Node x = graph.input("x", {DType::bfloat16, {40}});
    const Node part = slice(x, {.axis = 0, .start = start});
    CHECK(widths_of(graph, {part}, {pattern({40}).cast(DType::bfloat16)}) ==
          std::map<std::string, int>{{"slice", start % 8 == 0 ? 8 : 1}});
  }
}

TEST_CASE("a thread computes several elements of the step of an optimizer at once") {
  if (!has_simulated_cuda()) return;
  struct Widths {
    DType dtype;
    int sgd, adam, rms;
  };
  for (const auto& [dtype, sgd, adam, rms] : {Widths{DType::bfloat16, 4, 4, 2},
                                              {DType::float16, 4, 4, 2},
                                              {DType::float32, 4, 4, 2},
                                              {DType::float64, 2, 1, 1}}) {
    CAPTURE(name_of(dtype));
    for (const std::int64_t begin : {0, 8, 1}) {
      CAPTURE(begin);
      Graph graph;
      std::vector<Tensor> inputs;
      const auto slice = [&](const char* name) {
        inputs.push_back(pattern({37}, 7, 3, 11, 0).cast(dtype));
        return graph.input(name, {dtype, {37}});
      };
      const Node value = slice("value");
      const Node grad = slice("grad");
      const Node first = slice("first");
      const Node second = slice("second");
      const Node rate = graph.input("rate", {DType::float32, {}});
      inputs.push_back(Tensor::scalar(0.1F));
      // A segment that begins at 1 is computed one by one, like the single element before it.
      std::vector<StepSegment> segments{{0, 37}};
      if (begin > 0) segments = {{0, begin, 0.1}, {begin, 37 - begin}};
      const auto widths =
          widths_of(graph,
                    {sgd_step(value, grad, first, rate, {.momentum = 0.9, .segments = segments}).value,
                     adam_step(value, grad, first, second, rate, rate, {.segments = segments}).value,
                     rms_step(value, grad, {.square = first}, rate, {.segments = segments}).value},
                    inputs);
      const auto expected = [&](int width) { return begin == 1 ? 1 : width; };
      CHECK(widths == std::map<std::string, int>{{"sgd_step", expected(sgd)},
                                                 {"adam_step", expected(adam)},
                                                 {"rms_step", expected(rms)}});
    }
  }
}

}  // namespace plexaura::testing::cuda_several_test
