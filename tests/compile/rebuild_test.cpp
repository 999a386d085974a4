#include <algorithm>
#include <doctest/doctest.h>

#include "core/compile/compile.h"
#include "core/compile/passes.h"
#include "core/device/forwarding_backend.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"

namespace plexaura::testing::rebuild_test {

namespace {

// A backend that asks for one list of repeats.
class RepeatingBackend final : public ForwardingBackend {
 public:
  explicit RepeatingBackend(std::vector<Repeat> repeats)
      : ForwardingBackend(test_backend()), repeats_(std::move(repeats)) {}
  std::vector<Repeat> repeats(const Graph&, NodeId last, const Uses&) const override {
    return last == 0 ? repeats_ : std::vector<Repeat>{};
  }

 private:
  std::vector<Repeat> repeats_;
};

struct Fixture {
  Graph graph;
  Node x = graph.input("x", {DType::float32, {40}});
};

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> found;
  for (NodeId id = 0; id < graph.size(); ++id) found.emplace_back(graph.record(id).op->name());
  return found;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a backend that repeats nothing leaves the graph") {
  CHECK_FALSE(repeat(copy(graph, std::vector{exp(x).value()}), RepeatingBackend({})));
}

TEST_CASE_FIXTURE(Fixture, "readers read copies, which come right before the first of them") {
  const Node a = exp(x);
  const Node b = tanh(a);
  const Node first = sqrt(b);
  const Node second = abs(b);
  const Node third = b + a;
  const std::vector<Value> roots{first.value(), second.value(), third.value()};
  const RepeatingBackend backend({{{a.id(), b.id()}, {second.id(), third.id()}}});
  const auto repeated = repeat(copy(graph, roots), backend);
  REQUIRE(repeated);
  CHECK(names(*repeated->graph) == Names{"input", "exp", "tanh", "sqrt", "exp", "tanh", "abs", "add"});
  CHECK(repeated->graph->record(3).inputs == std::vector<Value>{{2, 0}});
  CHECK(repeated->graph->record(6).inputs == std::vector<Value>{{5, 0}});
  CHECK(repeated->graph->record(7).inputs == std::vector<Value>{{5, 0}, {4, 0}});
}

TEST_CASE_FIXTURE(Fixture,
                  "each repeat has copies of its own, and nodes that nobody reads any more are left out") {
  const Node a = exp(x);
  const Node first = sqrt(a);
  const Node second = abs(a);
  const Node last = tanh(first);
  const std::vector<Value> roots{first.value(), second.value(), last.value()};
  // The second repeat copies a reader of the first one.
  const RepeatingBackend backend(
      {{{a.id()}, {first.id()}}, {{a.id(), first.id()}, {last.id()}}, {{a.id()}, {second.id()}}});
  const auto repeated = repeat(copy(graph, roots), backend);
  REQUIRE(repeated);
  CHECK(names(*repeated->graph) == Names{"input", "exp", "sqrt", "exp", "abs", "exp", "sqrt", "tanh"});
  CHECK(repeated->roots == std::vector<Value>{{2, 0}, {4, 0}, {7, 0}});
}

TEST_CASE_FIXTURE(Fixture, "copies of random ops draw the same numbers, and programs keep their values") {
  const Node dropped = dropout(exp(x), {.p = 0.5});
  const Node first = sqrt(dropped);
  const Node second = abs(dropped);
  const NodeId dropout_node = dropped.id();
  const std::vector<Tensor> feeds{Tensor::of<float>({40}, std::vector<float>(40, 0.5F))};
  const StepBlock block{.step = 3, .seed = 5, .first_sample = 0};
  // Passes before this one number the nodes of this graph as it does.
  RepeatingBackend backend({{{dropout_node}, {second.id()}}});
  Runner repeating(graph, {first, second}, backend);
  Runner plain(graph, {first, second}, test_backend());
  CHECK(repeating(feeds, block) == plain(feeds, block));
}

TEST_CASE_FIXTURE(
    Fixture, "the program names the pass only if it changes something, and a graph for debugging has none") {
  const Node a = exp(x);
  const Node first = sqrt(a);
  const Node second = abs(a);
  RepeatingBackend backend({{{a.id()}, {second.id()}}});
  const std::vector<ProgramOutput> outputs{{.node = first}, {.node = second}};
  const auto passes = [&](Backend& of, bool optimise) {
    const auto program = compile(graph, outputs, of, {.optimise = optimise});
    return std::ranges::any_of(program->passes,
                               [](const std::string& pass) { return pass.starts_with("repeat"); });
  };
  CHECK(passes(backend, true));
  CHECK_FALSE(passes(backend, false));
  CHECK_FALSE(passes(test_backend(), true));
}

}  // namespace plexaura::testing::rebuild_test
