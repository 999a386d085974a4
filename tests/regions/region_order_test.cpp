#include "core/regions/region_order.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <set>
#include <vector>

#include "core/ops/all_reduce.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "testing/values.h"

namespace plexaura::testing::region_order_test {

namespace {

constexpr NodeId leaves = 3;

// Adds sums of nodes drawn from the last 12.
void draw(Graph& graph, Random& random, NodeId nodes) {
  std::vector<Node> drawn;
  for (NodeId leaf = 0; leaf < leaves; ++leaf)
    drawn.push_back(graph.input(std::string(1, static_cast<char>('a' + leaf)), {DType::float32, {2}}));
  while (drawn.size() < nodes) {
    const auto earlier = [&] {
      const auto back = std::min<std::int64_t>(12, static_cast<std::int64_t>(drawn.size()));
      return drawn[drawn.size() - 1 - static_cast<std::size_t>(random.below(back))];
    };
    drawn.push_back(random.below(8) == 0 ? all_reduce_sum(earlier()) : earlier() + earlier());
  }
}

// Returns true if the groups form a graph without a cycle. Removes groups without predecessors until none is
// left.
bool is_acyclic(const Graph& graph, const std::vector<NodeId>& group_of) {
  std::set<std::pair<NodeId, NodeId>> edges;
  NodeId last_collective = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (const Value input : graph.record(id).inputs)
      if (group_of[input.node] != group_of[id]) edges.emplace(group_of[input.node], group_of[id]);
    if (!graph.record(id).op->traits().collective) continue;
    if (last_collective != 0 && group_of[last_collective] != group_of[id])
      edges.emplace(group_of[last_collective], group_of[id]);
    last_collective = id;
  }
  std::set<NodeId> left(group_of.begin(), group_of.end());
  for (bool goes_on = true; goes_on;) {
    std::set<NodeId> waiting;
    for (const auto& [from, to] : edges) waiting.insert(to);
    goes_on = std::erase_if(left, [&](NodeId group) { return !waiting.contains(group); }) > 0;
    std::erase_if(edges, [&](const auto& edge) { return !left.contains(edge.first); });
  }
  return left.empty();
}

}  // namespace

TEST_CASE("regions are joined exactly where that closes no cycle") {
  int joined = 0;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Graph graph;
    draw(graph, random, 60);
    const Uses uses(graph, {});
    RegionOrder order(graph, uses);
    std::vector<NodeId> group_of(graph.size());
    for (NodeId id = 0; id < graph.size(); ++id) group_of[id] = id;
    std::set<NodeId> taken;
    for (int attempt = 0; attempt < 80; ++attempt) {
      std::set<NodeId> nodes;
      const std::int64_t from = leaves + random.below(40);
      for (int i = 0; i < 3; ++i) nodes.insert(static_cast<NodeId>(from + random.below(15)));
      if (std::ranges::any_of(nodes, [&](NodeId id) { return taken.contains(id); })) continue;
      std::vector<NodeId> then = group_of;
      for (const NodeId id : nodes) then[id] = *nodes.begin();
      const bool expected = is_acyclic(graph, then);
      const std::vector<NodeId> region(nodes.begin(), nodes.end());
      REQUIRE(order.join(region) == expected);
      ++(expected ? joined : refused);
      if (!expected) continue;
      group_of = then;
      taken.insert(nodes.begin(), nodes.end());
    }
  }
  CHECK(joined > 100);
  CHECK(refused > 100);
}

TEST_CASE("the work of a join does not grow with the graph") {
  const auto visits_for_each_region = [](NodeId regions) {
    Graph graph;
    Node x = graph.input("x", {DType::float32, {2}});
    std::vector<Node> saved;
    for (NodeId i = 0; i < regions; ++i) saved.push_back(x = relu(exp(x)));
    Node gradient = x;
    // reads a value that the forward pass has saved
    for (NodeId i = regions; i-- > 0;) gradient = gradient * saved[i];
    const Uses uses(graph, {});
    RegionOrder order(graph, uses);
    for (NodeId i = 0; i < regions; ++i) REQUIRE(order.join(std::vector<NodeId>{1 + 2 * i, 2 + 2 * i}));
    return static_cast<double>(order.visits()) / regions;
  };
  CHECK(visits_for_each_region(2000) == visits_for_each_region(200));
}

}  // namespace plexaura::testing::region_order_test
