#include "testing/dead_gradients.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::dead_gradients_test {

namespace {

const TensorType two{DType::float64, {2}};

Node parameter(Graph& graph, const std::string& name) { return graph.parameter(name, two); }

// Returns what is dead in a loss of the parameters 'a' and 'b', which are [1, 2] and [0, 3].
std::vector<DeadGradient> dead_in(const Node& loss) {
  const Tensor a = Tensor::of<double>({2}, {1, 2});
  const Tensor b = Tensor::of<double>({2}, {0, 3});
  return find_dead_gradients(loss, {{"a", a}, {"b", b}}, {"a", "b"}, test_backend());
}

std::uint32_t this_line(std::source_location where = std::source_location::current()) { return where.line(); }

}  // namespace

TEST_CASE("gradients that are alive are not named") {
  Graph graph;
  CHECK(dead_in(sum(parameter(graph, "a") * parameter(graph, "b"))).empty());
}

TEST_CASE("the op that makes a gradient zero is named, and not those below or above it") {
  Graph graph;
  const Node below = exp(parameter(graph, "a"));
  const std::uint32_t line = this_line() + 1;
  const Node cut = relu(below - 100);
  const std::vector<DeadGradient> dead = dead_in(sum(square(cut + parameter(graph, "b"))));
  REQUIRE(dead.size() == 1);
  CHECK(dead[0].parameter == "a");
  CHECK(dead[0].what == "is zero everywhere");
  CHECK(dead[0].cut_by.starts_with("relu %"));
  CHECK(dead[0].cut_by.ends_with(fmt::format("dead_gradients_test.cpp:{}", line)));
  CHECK(to_string(dead[0]) ==
        "the gradient of 'a' is zero everywhere, and the op that makes it so is " + dead[0].cut_by);
}

TEST_CASE("an op that passes no gradient on is named, also through an op without derivatives") {
  Graph graph;
  const Node b = parameter(graph, "b");
  std::vector<DeadGradient> dead = dead_in(sum(stop_gradient(exp(parameter(graph, "a"))) * b));
  REQUIRE(dead.size() == 1);
  CHECK(dead[0].what == "does not exist");
  CHECK(dead[0].cut_by.starts_with("stop_gradient %"));
  dead = dead_in(sum(cast(gt(exp(parameter(graph, "a")), 2), DType::float64) * b));
  REQUIRE(dead.size() == 1);
  CHECK(dead[0].cut_by.starts_with("cast %"));
}

TEST_CASE("the op that makes a gradient infinite is named") {
  Graph graph;
  const std::vector<DeadGradient> dead =
      dead_in(sum(sqrt(2 * parameter(graph, "b")) * parameter(graph, "a")));
  REQUIRE(dead.size() == 1);
  CHECK(dead[0].parameter == "b");
  CHECK(dead[0].what == "has Inf at element 0");
  CHECK(dead[0].cut_by.starts_with("sqrt %"));
}

TEST_CASE("a gradient that lives on one of two ways is alive") {
  Graph graph;
  const Node a = parameter(graph, "a");
  CHECK(dead_in(sum(stop_gradient(a) * a + parameter(graph, "b"))).empty());
}

}  // namespace plexaura::testing::dead_gradients_test
