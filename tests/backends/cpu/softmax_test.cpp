#include "core/ops/softmax.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/backend_fixture.h"

namespace plexaura::testing::softmax_kernel_test {

namespace {

// Exponentials have errors of some units in the last place. A probability adds the errors of its whole line.
constexpr double bound = 2e-6;
constexpr double smallest = std::numeric_limits<float>::denorm_min();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// Returns softmax and log_softmax of x along the axis, and their gradients.
std::vector<Node> both_with_gradients(const Node& x, const Node& seed, std::int64_t axis) {
  std::vector<Node> found{softmax(x, axis), log_softmax(x, axis)};
  for (std::size_t i = 0; i < 2; ++i)
    found.push_back(vjp(std::vector{found[i]}, std::vector{seed}, std::vector{x})[0]);
  return found;
}

std::vector<Tensor> computed_by(Backend& backend, const Tensor& x, std::int64_t axis) {
  Graph graph;
  const Node input = graph.input("x", x.type());
  return Runner(graph, {softmax(input, axis), log_softmax(input, axis)}, backend)({x});
}

}  // namespace

TEST_CASE("softmax of doubles has the digits of the portable kernels, and its limits") {
  constexpr double wide_infinity = std::numeric_limits<double>::infinity();
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const Shape& shape : {Shape{5000, 1}, Shape{9, 64}, Shape{17, 133}})
    for (const std::int64_t axis : {0, 1})
      for (const double special : {0.5, -1e300, -wide_infinity, wide_infinity, not_a_number * 1.0}) {
        CAPTURE(to_string(shape));
        CAPTURE(special);
        Graph graph;
        const Node x = graph.input("x", {DType::float64, shape});
        const std::vector<Node> nodes = both_with_gradients(x, graph.input("seed", x.type()), axis);
        Tensor value = drawn(x.type(), "x", {.low = -20, .high = 20});
        value.as<double>()[3] = special;
        const std::vector<Tensor> feeds{value, drawn(x.type(), "seed")};
        std::vector<ProgramOutput> outputs;
        for (const Node& node : nodes) outputs.push_back({.node = node});
        CHECK(compile(graph, outputs, *fast)->to_text().find("[portable]") == std::string::npos);
        const std::vector<Tensor> found = Runner(graph, nodes, *fast)(feeds);
        const std::vector<Tensor> wanted = Runner(graph, nodes, *portable)(feeds);
        for (std::size_t output = 0; output < found.size(); ++output)
          for (std::size_t i = 0; i < static_cast<std::size_t>(value.elements()); ++i) {
            const double own = found[output].as<double>()[i];
            const double expected = wanted[output].as<double>()[i];
            if (std::isnan(own) && std::isnan(expected)) continue;
            // A probability has its own digits. A logarithm or a gradient has those of its largest term.
            const double scale =
                output == 0 && expected >= 1e-300 ? expected : std::max(1.0, std::abs(expected));
            if (own != expected) CHECK(std::abs(own - expected) <= 1e-13 * scale);
          }
      }
}

TEST_CASE("softmax, its logarithm and their gradients agree with the portable kernels in double") {
  const std::vector<std::pair<Shape, std::int64_t>> cases{
      {{1}, 0},      {{7}, 0},        {{5000}, 0},      {{3, 1}, 1},      {{3, 5}, 1},  {{200, 17}, 1},
      {{9, 64}, 1},  {{2, 3, 33}, 2}, {{300, 130}, 1},  {{5, 1}, 0},      {{17, 5}, 0}, {{40, 64}, 0},
      {{33, 65}, 0}, {{3, 7, 5}, 1},  {{4, 9, 130}, 1}, {{2, 3, 4, 5}, 1}};
  for (const auto& [shape, axis] : cases) {
    CAPTURE(to_string(shape));
    CAPTURE(axis);
    const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
      const Node x = graph.input("x", {dtype, shape});
      return both_with_gradients(x, graph.input("seed", x.type()), axis);
    });
    CAPTURE(result.program);
    CHECK_FALSE(result.uses("portable"));
    CHECK(result.worst() < bound);
    const Agreement wide = agreement(
        [&](Graph& graph, DType dtype) -> std::vector<Node> {
          const Node x = graph.input("x", {dtype, shape});
          return {softmax(x, axis), log_softmax(x, axis)};
        },
        {.low = -20, .high = 20});
    CHECK(wide.worst() < bound);
  }
}

TEST_CASE("one kernel computes the gradient of a softmax over rows") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node x = graph.input("x", {dtype, {3, 5}});
    return both_with_gradients(x, graph.input("seed", x.type()), 1);
  });
  CAPTURE(result.program);
  CHECK(result.uses("softmax grad"));
  CHECK(result.uses("log_softmax grad"));
  CHECK_FALSE(result.uses("sum"));
}

TEST_CASE("formulas that only look like the gradient of a softmax are computed as they are") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node y = graph.input("y", {dtype, {4, 4}});
    const Node grad = graph.input("grad", {dtype, {4, 4}});
    const Node row = graph.input("row", {dtype, {1, 4}});
    const ReduceOptions rows{.axes = {1}, .keepdims = true};
    const ReduceOptions columns{.axes = {0}, .keepdims = true};
    const ReduceOptions dropped{.axes = {1}};
    return {y * (grad - sum(grad * y, columns)),  y * (grad - sum(grad * y, dropped)),
            y * (grad - sum(grad * grad, rows)),  y * (row - sum(row * y, rows)),
            row * (grad - sum(grad * row, rows)), grad * (y - sum(grad * y, rows)),
            grad - exp(y) * sum(grad, columns),   grad - exp(y) * sum(y, rows),
            grad - exp(row) * sum(grad, rows),    exp(y) * sum(grad, rows) - grad,
            (grad - sum(y * grad, rows)) * y,     grad - sum(grad, rows) * exp(y)};
  });
  CHECK(result.worst() < bound);
}

TEST_CASE("NaN and infinities spread over a line as in the portable kernels, and over no other line") {
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const std::int64_t extent : {1, 3, 16, 37})
    for (const std::int64_t place : {std::int64_t{0}, extent - 1})
      for (const float special : {not_a_number, infinity, -infinity})
        for (const bool fills : {false, true})
          for (const std::int64_t axis : {0, 1}) {
            CAPTURE(extent);
            CAPTURE(place);
            CAPTURE(special);
            CAPTURE(fills);
            CAPTURE(axis);
            constexpr std::int64_t lines = 3;
            Tensor x = drawn({DType::float32, axis == 1 ? Shape{lines, extent} : Shape{extent, lines}}, "x");
            for (std::int64_t i = 0; i < extent; ++i)
              if (fills || i == place)
                x.as<float>()[static_cast<std::size_t>(axis == 1 ? extent + i : i * lines + 1)] = special;
            const std::vector<Tensor> found = computed_by(*fast, x, axis);
            const std::vector<Tensor> expected = computed_by(*portable, x, axis);
            for (std::size_t output = 0; output < 2; ++output)
              for (std::int64_t i = 0; i < x.elements(); ++i) {
                const auto at = static_cast<std::size_t>(i);
                const double own = found[output].to_doubles()[at];
                const double wanted = expected[output].to_doubles()[at];
                CHECK(std::isnan(own) == std::isnan(wanted));
                if (!std::isnan(wanted)) CHECK((own == wanted || std::abs(own - wanted) < bound));
              }
          }
}

TEST_CASE("large logits overflow nothing, masked ones are 0, and tiny probabilities stay denormal") {
  const auto fast = make_cpu_backend();
  const std::vector<float> logits{3e38F, 3e38F, -3e38F, -1e9F, -infinity};
  const auto values = computed_by(*fast, Tensor::of<float>({1, 5}, logits), 1)[0].to_doubles();
  CHECK(values == std::vector<double>{0.5, 0.5, 0, 0, 0});
  const std::vector<float> distant{0, -80, -90, -100, -103, -104.5F, -200};
  for (const Shape& shape : {Shape{1, 7}, Shape{7, 1}}) {
    const auto results = computed_by(*fast, Tensor::of<float>(shape, distant), shape[0] == 1 ? 1 : 0);
    for (std::size_t i = 0; i < distant.size(); ++i) {
      const double expected = std::exp(static_cast<double>(distant[i]));
      CHECK(std::abs(results[0].to_doubles()[i] - expected) < bound * expected + smallest);
      CHECK(results[1].to_doubles()[i] == static_cast<double>(distant[i]));
    }
  }
}

TEST_CASE("a softmax and its gradient may take the memory of an operand") {
  const auto backend = make_cpu_backend();
  for (const std::int64_t axis : {0, 1}) {
    Graph graph;
    const Node x = graph.input("x", {DType::float32, {19, 70}});
    const Node y = softmax(x, axis);
    const Tensor value = drawn(x.type(), "x");
    RegionRun separate(*backend, graph, single(graph, y.id()), {value});
    RegionRun in_place(*backend, graph, single(graph, y.id()), {value}, {.in_place = {{0, 0}}});
    separate.launch();
    in_place.launch();
    CHECK(in_place.output().read() == separate.output().read());
  }
}

}  // namespace plexaura::testing::softmax_kernel_test
