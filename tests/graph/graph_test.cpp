#include "core/graph/graph.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <source_location>
#include <type_traits>

#include "core/graph/print.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::graph_test {

namespace {

const TensorType row{DType::float32, {3}};

// == of nodes would give one bool although a mask is meant, and a bool is no number: x * (x == y) must not
// compile.
template <class A, class B>
concept HaveEqual = requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept HaveUnequal = requires(A a, B b) {
  a != b;
};
template <class A, class B>
concept HaveProduct = requires(A a, B b) {
  a* b;
};
static_assert(!HaveEqual<Node, Node>);
static_assert(!HaveUnequal<Node, Node>);
static_assert(HaveProduct<Node, Node>);
static_assert(HaveProduct<Node, double>);
static_assert(HaveProduct<Node, std::int64_t>);
static_assert(!HaveProduct<Node, bool>);
static_assert(!std::is_constructible_v<Operand, bool>);
// Comparing two nodes makes a node, so that `if (loss > best)` must not compile.
static_assert(!std::is_constructible_v<bool, Node>);
static_assert(std::is_same_v<decltype(Node() > 0), Node>);

}  // namespace

TEST_CASE("a shape error names the user's line, the op, every shape, the rule and what to do") {
  Graph graph;
  const Node a = graph.input("a", {DType::float32, {2, 3}});
  const Node b = graph.input("b", {DType::float32, {4, 5}});
  const auto here = std::source_location::current();
  const std::string by_name = user_error([&] { matmul(a, b); });
  const std::string by_operator = user_error([&] { a + b; });
  CHECK(contains(by_name, "graph_test.cpp:" + std::to_string(here.line() + 1)));
  CHECK(contains(by_name, "matmul(float32[2,3], float32[4,5]) {transpose_a=false, transpose_b=false}"));
  CHECK(contains(by_name, "inner extents must be equal"));
  CHECK(contains(by_operator, "graph_test.cpp:" + std::to_string(here.line() + 2)));
  CHECK(contains(by_operator, "reshape"));
}

TEST_CASE("a line is named from the root of the project") {
  CHECK(Origin::at(std::source_location::current()).file == "tests/graph/graph_test.cpp");
}

TEST_CASE("a YAML place takes the place of the C++ line, and scopes make a path") {
  Graph graph;
  const Node x = graph.input("x", row);
  const Graph::Scope outer(graph, "layer1");
  const Graph::WithOrigin place(graph, {"models/mlp.yaml", 12, 3, {}, false});
  {
    const Graph::Scope inner(graph, "0");
    const std::string text = user_error([&] { add(x, graph.input("y", {DType::float32, {4}})); });
    CHECK(contains(text, "models/mlp.yaml:12:3 (layer1.0)"));
  }
  CHECK(to_string(graph.record(exp(x).id()).origin) == "models/mlp.yaml:12:3 (layer1)");
}

TEST_CASE("asking for a parameter again ties it; another type is an error") {
  Graph graph;
  const Node first = graph.parameter("weight", row);
  CHECK(same_value(graph.parameter("weight", row), first));
  CHECK(same_value(graph.buffer("mean", row), graph.buffer("mean", row)));
  const std::string text = user_error([&] { graph.parameter("weight", {DType::float32, {4}}); });
  CHECK(contains(text, "'weight' is a parameter of float32[3] already and was requested as float32[4]"));
  CHECK(contains(user_error([&] { graph.buffer("weight", row); }),
                 "use the same kind and type, or another name"));
  graph.input("x", row);
  CHECK(contains(user_error([&] { graph.input("x", row); }), "already a leaf named 'x'"));
  CHECK(contains(user_error([&] { graph.buffer("x", row); }), "'x' is an input of float32[3] already"));
}

TEST_CASE("same_value compares handles") {
  Graph graph;
  Graph other;
  const Node x = graph.input("x", row);
  const Node again = x;
  CHECK(same_value(x, again));
  CHECK(!same_value(x, graph.input("y", row)));
  CHECK(!same_value(x, other.input("x", row)));
  CHECK(!same_value(x, Node()));
  CHECK(same_value(Node(), Node()));
}

TEST_CASE("a node without a graph is empty") {
  Graph graph;
  CHECK(Node().is_empty());
  CHECK(!graph.input("x", row).is_empty());
}

TEST_CASE("updates: of buffers only, of their type, one for each") {
  Graph graph;
  const Node buffer = graph.buffer("mean", row);
  const Node parameter = graph.parameter("weight", row);
  const Node wide = graph.buffer("wide", {DType::float64, {3}});
  CHECK(contains(user_error([&] { graph.update(parameter, buffer); }), "only a buffer can be updated"));
  CHECK(contains(user_error([&] { graph.update(exp(buffer), buffer); }), "only a buffer can be updated"));
  CHECK(contains(user_error([&] { graph.update(wide, buffer); }), "must have the buffer's type"));
  graph.update(buffer, parameter);
  CHECK(contains(user_error([&] { graph.update(buffer, parameter); }), "has an update already"));
  CHECK(graph.updates().size() == 1);
  Graph other;
  const Node foreign = other.buffer("mean", row);
  const Node wanted = graph.buffer("other mean", row);
  CHECK(contains(user_error([&] { graph.update(foreign, parameter); }), "update belongs to another graph"));
  CHECK(contains(user_error([&] { graph.update(wanted, foreign); }), "update belongs to another graph"));
  CHECK(contains(user_error([&] { graph.update(Node(), parameter); }), "empty Node"));
  CHECK(contains(user_error([&] { graph.update(wanted, Node()); }), "empty Node"));
  CHECK(graph.updates().size() == 1);
}

TEST_CASE("a shape that cannot be counted names the op that would make it") {
  Graph graph;
  const Node column = graph.input("column", {DType::float32, {std::int64_t{1} << 32, 1}});
  const Node line = graph.input("line", {DType::float32, {1, std::int64_t{1} << 32}});
  const std::string text = user_error([&] { column + line; });
  CHECK(contains(text, "graph_test.cpp:"));
  CHECK(contains(text,
                 "add(float32[4294967296,1], float32[1,4294967296]): the shape [4294967296,4294967296] has"));
}

TEST_CASE("nodes of two graphs cannot be mixed, and an empty node is no value") {
  Graph graph;
  Graph other;
  const Node a = graph.input("a", row);
  const Node b = other.input("b", row);
  CHECK(contains(user_error([&] { add(a, b); }), "belongs to another graph"));
  CHECK(contains(user_error([&] { add(a, Node()); }), "empty Node"));
  CHECK(contains(user_error([&] { add(1, 2); }), "at least one operand must be a node"));
}

TEST_CASE("a number beside integers is one of them, or an error that names the line") {
  Graph graph;
  const Node x = graph.input("x", {DType::int64, {3}});
  const Node byte = graph.input("byte", {DType::uint8, {}});
  const Node flag = graph.input("flag", {DType::boolean, {}});
  const auto here = std::source_location::current();
  const std::string half = user_error([&] { x * 0.5; });
  CHECK(contains(half, "graph_test.cpp:" + std::to_string(here.line() + 1) + ": 0.5 combined with int64[3]"));
  CHECK(contains(half, "whole numbers from -9223372036854775808 to 9223372036854775807"));
  CHECK(contains(half, "cast()"));
  CHECK(contains(user_error([&] { 1e19 + Operand(x); }), "1e+19 combined with int64[3]"));
  CHECK(contains(user_error([&] { add(x, std::nan("")); }), "nan combined with int64[3]"));
  CHECK(contains(user_error([&] { lt(byte, 256); }), "256 combined with uint8[]: "));
  CHECK(contains(user_error([&] { lt(byte, -1); }), "from 0 to 255"));
  CHECK(contains(user_error([&] { where(flag, flag, 2); }), "from 0 to 1"));
  CHECK((x * -2.0).dtype() == DType::int64);
  constexpr std::int64_t most = (std::int64_t{1} << 53) - 1;
  CHECK((x + most).dtype() == DType::int64);
  CHECK((x - most).dtype() == DType::int64);
  for (const std::int64_t rounded : {most + 1, most + 2, -most - 1, std::numeric_limits<std::int64_t>::min()})
    CHECK(contains(user_error([&] { x + rounded; }), "exact below 2^53 only; write graph.constant("));
  CHECK(lt(byte, 255).dtype() == DType::boolean);
  CHECK(where(flag, flag, 1).dtype() == DType::boolean);
  CHECK(contains(user_error([&] { where(flag, 1, 0); }), "where(bool[]): both choices are numbers"));
  const Node half_node = graph.input("half", {DType::float16, {3}});
  CHECK((half_node * 0.1).dtype() == DType::float16);
  const Graph::WithOrigin place(graph, {"models/mlp.yaml", 12, 3, {}, false});
  CHECK(contains(user_error([&] { x / 2.5; }), "models/mlp.yaml:12:3: 2.5 combined with"));
}

TEST_CASE("a number beside floats is within their range, or an error that names the line") {
  Graph graph;
  const Node x = graph.input("x", {DType::float16, {3}});
  const auto here = std::source_location::current();
  const std::string text = user_error([&] { x / 70000; });
  CHECK(contains(text, "graph_test.cpp:" + std::to_string(here.line() + 1)));
  CHECK(contains(text, "70000 combined with float16[3]"));
  CHECK(contains(text, "cast() the node to a wider type"));
  CHECK(contains(user_error([&] { graph.input("y", row) * 1e39; }), "the largest number of float32"));
  CHECK_NOTHROW(x * 65504);
  CHECK_NOTHROW(x * -std::numeric_limits<double>::infinity());
  CHECK_NOTHROW(x * 1e-20);
}

TEST_CASE("streams are fixed by scope path and ordinal") {
  Graph one;
  Graph two;
  const std::int64_t first = one.next_stream();
  CHECK(one.next_stream() != first);
  CHECK(two.next_stream() == first);
  const Graph::Scope scope(one, "dropout1");
  const Graph::Scope same(two, "dropout1");
  const std::int64_t scoped = one.next_stream();
  CHECK(scoped != first);
  CHECK(two.next_stream() == scoped);
}

TEST_CASE("ops are equal when every option is") {
  CHECK(MatMul({.transpose_a = true}) == MatMul({.transpose_a = true}));
  CHECK(!(MatMul({.transpose_a = true}) == MatMul({.transpose_b = true})));
  CHECK(!(Reduce(Reduce::Kind::sum, {{0}, false}) == Reduce(Reduce::Kind::mean, {{0}, false})));
  CHECK(!(Reduce(Reduce::Kind::sum, {{0}, false}) == Reduce(Reduce::Kind::sum, {{0}, true})));
  CHECK(!(Leaf(LeafKind::input, "x", row) == Leaf(LeafKind::input, "y", row)));
}

TEST_CASE("constants are equal when their bits are") {
  const auto leaf = [](double value) { return Leaf(std::make_shared<const Tensor>(Tensor::scalar(value))); };
  CHECK(leaf(0.1) == leaf(0.1));
  CHECK(!(leaf(0.0) == leaf(-0.0)));
  CHECK(!(leaf(1.0) == Leaf(std::make_shared<const Tensor>(Tensor::scalar(1.0F)))));
}

TEST_CASE("descriptions print floats in the fewest digits that give the number back") {
  Description description;
  description.add("epsilon", 1e-5)
      .add("axes", std::vector<std::int64_t>{0, 2})
      .add("keepdims", true)
      .add("mode", std::string("mean"));
  CHECK(to_string(description) == "epsilon=1e-05, axes=[0,2], keepdims=true, mode=mean");
  Description near;
  near.add("epsilon", 1e-5 + 1e-21)
      .add("axes", std::vector<std::int64_t>{0, 2})
      .add("keepdims", true)
      .add("mode", std::string("mean"));
  CHECK(!(near == description));
}

TEST_CASE("a step scalar has the dtype that it is stored in") {
  Graph graph;
  CHECK(graph.step_scalar(StepScalar::random, DType::int64).shape() == Shape{3});
  CHECK(contains(user_error([&] { graph.step_scalar(StepScalar::learning_rate, DType::bfloat16); }),
                 "learning_rate"));
}

TEST_CASE("a node whose graph is gone is refused in words") {
  Node dead;
  {
    Graph graph;
    dead = graph.input("x", row);
    CHECK(dead.shape() == Shape{3});
  }
  const auto check = [&] {
    CHECK(user_error([&] { dead.shape(); }) ==
          "output 0 of node %0 was used after its graph was destroyed; keep the Graph as long as its nodes "
          "are used");
    CHECK(contains(user_error([&] { dead + 1; }), "after its graph was destroyed"));
  };
  check();
  Graph next;  // may have the address of the first graph
  const Node x = next.input("x", row);
  check();
  CHECK(contains(user_error([&] { x + dead; }), "after its graph was destroyed"));
  CHECK(x.shape() == Shape{3});
}

TEST_CASE("a part of a graph that trains is built as for inference") {
  Graph graph;
  const Node x = graph.input("x", row);
  const auto drops = [&] { return same_value(dropout(x, {.p = 0.5}), x) ? "nothing" : "some elements"; };
  CHECK(drops() == std::string("some elements"));
  {
    const Graph::Evaluating outer(graph);
    CHECK(graph.mode() == Mode::inference);
    CHECK(drops() == std::string("nothing"));
    { const Graph::Evaluating inner(graph); }
    CHECK(drops() == std::string("nothing"));
  }
  CHECK(graph.mode() == Mode::train);
  CHECK(drops() == std::string("some elements"));
}

}  // namespace plexaura::testing::graph_test
