#include "core/regions/select_regions.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>

#include "core/device/forwarding_backend.h"
#include "core/ops/all_reduce.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"

namespace plexaura::testing::select_regions_test {

namespace {

using NodeLists = std::vector<std::vector<NodeId>>;

constexpr double of_a_node = 10;
constexpr double nowhere = -1;

// A backend that offers the given regions at the given prices, whether they make sense or not. A single node
// costs `of_a_node`.
class Offering final : public ForwardingBackend {
 public:
  Offering() : ForwardingBackend(oracle()) {}
  void offer(const std::vector<Node>& nodes, const std::vector<Node>& outputs, double seconds = of_a_node) {
    Region region{"offered", {}, {}, {}};
    for (const Node& node : nodes) region.nodes.push_back(node.id());
    for (const Node& output : outputs) region.outputs.push_back(output.value());
    const Graph& graph = nodes[0].graph();
    for (const NodeId id : region.nodes)
      for (const Value input : graph.record(id).inputs)
        if (std::ranges::find(region.nodes, input.node) == region.nodes.end()) region.inputs.push_back(input);
    seconds_[region.nodes] = seconds;
    offered_.push_back(region);
  }
  std::vector<Region> regions(const Graph&, NodeId last, const Uses&) const override {
    std::vector<Region> ending;
    std::ranges::copy_if(offered_, std::back_inserter(ending),
                         [&](const Region& region) { return region.nodes.back() == last; });
    return ending;
  }

  void price(const Node& node, double seconds) { seconds_[{node.id()}] = seconds; }
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const auto found = seconds_.find(query.region.nodes);
    Candidate candidate;
    candidate.seconds = found == seconds_.end() ? of_a_node : found->second;
    return candidate.seconds == nowhere ? std::vector<Candidate>{} : std::vector{candidate};
  }

 private:
  std::vector<Region> offered_;
  std::map<std::vector<NodeId>, double> seconds_;
};

NodeLists nodes_of(const Graph& graph, const Offering& backend, const std::vector<Node>& kept,
                   bool fuse = true) {
  std::vector<Value> values;
  for (const Node& node : kept) values.push_back(node.value());
  NodeLists nodes;
  for (const Region& region : select_regions(graph, values, backend, fuse)) nodes.push_back(region.nodes);
  return nodes;
}

std::vector<NodeId> ids(std::initializer_list<Node> nodes) {
  std::vector<NodeId> result;
  for (const Node& node : nodes) result.push_back(node.id());
  return result;
}

bool holds(const NodeLists& regions, const std::vector<NodeId>& wanted) {
  return std::ranges::find(regions, wanted) != regions.end();
}

struct Chain {
  Graph graph;
  Node x = graph.input("x", {DType::float32, {4}});
  Node a = exp(x);
  Node b = tanh(a);
  Node c = sqrt(b);
};

}  // namespace

TEST_CASE("of regions at one price the one with more nodes is taken") {
  Chain chain;
  Offering backend;
  backend.offer({chain.a, chain.b, chain.c}, {chain.c});
  backend.offer({chain.b, chain.c}, {chain.c});
  CHECK(nodes_of(chain.graph, backend, {chain.c}) == NodeLists{ids({chain.a, chain.b, chain.c})});
  CHECK(nodes_of(chain.graph, backend, {chain.c}, false).size() == 3);
}

TEST_CASE("a region that saves more wins, wherever it ends and however few its nodes are") {
  Chain chain;
  const Node d = neg(chain.c);
  Offering backend;
  backend.offer({chain.b, chain.c, d}, {d}, 28);
  backend.offer({chain.a, chain.b}, {chain.b}, 15);
  const auto regions = nodes_of(chain.graph, backend, {d});
  CHECK(regions == NodeLists{ids({chain.a, chain.b}), ids({chain.c}), ids({d})});
}

TEST_CASE("a region that takes longer than its nodes is left, and so is one without a kernel") {
  Chain chain;
  Offering backend;
  backend.offer({chain.a, chain.b, chain.c}, {chain.c}, nowhere);
  backend.offer({chain.b, chain.c}, {chain.c}, 21);
  CHECK(nodes_of(chain.graph, backend, {chain.c}).size() == 3);
  backend.offer({chain.a, chain.b}, {chain.b}, 20);
  CHECK(nodes_of(chain.graph, backend, {chain.c}) == NodeLists{ids({chain.a, chain.b}), ids({chain.c})});
}

TEST_CASE("nodes that have a kernel only together are taken together") {
  Chain chain;
  Offering backend;
  backend.price(chain.b, nowhere);
  backend.offer({chain.b, chain.c}, {chain.c}, 100);
  backend.offer({chain.a, chain.b}, {chain.b}, nowhere);
  CHECK(holds(nodes_of(chain.graph, backend, {chain.c}), ids({chain.b, chain.c})));
}

TEST_CASE("an inner value that is read elsewhere refuses the region, and the next one is taken") {
  Chain chain;
  const Node elsewhere = chain.a * 2;
  Offering backend;
  backend.offer({chain.a, chain.b, chain.c}, {chain.c});
  backend.offer({chain.b, chain.c}, {chain.c});
  const auto regions = nodes_of(chain.graph, backend, {chain.c, elsewhere});
  CHECK(holds(regions, ids({chain.b, chain.c})));
  CHECK(holds(regions, ids({chain.a})));
  // No node reads it, but it is an output of the program.
  CHECK(holds(nodes_of(chain.graph, backend, {chain.c, chain.b}), ids({chain.c})));
}

TEST_CASE("a value that the region gives out may be read elsewhere") {
  Chain chain;
  const Node elsewhere = tanh(chain.b);
  Offering backend;
  backend.offer({chain.b, chain.c}, {chain.b, chain.c});
  CHECK(holds(nodes_of(chain.graph, backend, {chain.c, elsewhere}), ids({chain.b, chain.c})));
}

TEST_CASE("a region that would wait for itself is refused") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const Node a = exp(x);
  const Node between = tanh(a);
  const Node b = a + between;
  Offering backend;
  backend.offer({a, b}, {a, b});
  CHECK(nodes_of(graph, backend, {b}).size() == 3);
}

TEST_CASE("regions that would wait for each other are refused") {
  // There are paths r1 -> outside -> r2 and, by another node of r2, r2 -> r1. No single region contains a
  // cycle.
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const Node p = exp(x);      // belongs to the later region
  const Node q = tanh(p);     // belongs to the earlier region, reads p
  const Node out = sqrt(q);   // outside, reads the earlier region
  const Node last = out + p;  // belongs to the later region
  Offering backend;
  backend.offer({p, last}, {p, last});
  CHECK(nodes_of(graph, backend, {last, q}).size() == 4);

  // Here the path contains a node after the end of the second region.
  Graph longer;
  const Node y = longer.input("y", {DType::float32, {4}});
  const Node first = exp(y);        // belongs to region A
  const Node second = tanh(first);  // belongs to region B, reads A
  const Node third = sqrt(y);
  const Node end_of_b = second + third;
  const Node behind = relu(end_of_b);
  const Node end_of_a = behind + first;
  Offering other;
  other.offer({first, end_of_a}, {first, end_of_a});
  other.offer({second, end_of_b}, {second, end_of_b});
  const auto regions = nodes_of(longer, other, {end_of_a});
  CHECK(!holds(regions, ids({first, end_of_a})));
  CHECK(holds(regions, ids({second, end_of_b})));
  std::size_t nodes = 0;
  for (const auto& region : regions) nodes += region.size();
  CHECK(nodes == 6);
}

TEST_CASE("a taken region counts whole, though it reaches behind the next one") {
  // Region A = {a1, a2} is taken, and a2 reads B's result. Region B = {b1, b2} would need a1, which is
  // computed together with a2.
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const Node b1 = exp(x);
  const Node a1 = tanh(x);
  const Node b2 = b1 + a1;
  const Node middle = relu(b1);
  const Node a2 = sqrt(middle);
  Offering backend;
  backend.offer({a1, a2}, {a1, a2});
  backend.offer({b1, b2}, {b1, b2});
  const auto regions = nodes_of(graph, backend, {a2, b2});
  CHECK(holds(regions, ids({a1, a2})));
  CHECK(!holds(regions, ids({b1, b2})));
}

TEST_CASE("every region stands behind what it reads") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const Node a = exp(x);
  const Node b = tanh(x);
  const Node c = sqrt(b);
  const Node d = a + 1;
  const Node e = c + d;
  Offering backend;
  backend.offer({a, d}, {d});
  const auto regions = nodes_of(graph, backend, {e});
  CHECK(regions == NodeLists{ids({b}), ids({c}), ids({a, d}), ids({e})});
}

TEST_CASE("collective ops keep their order") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4}});
  const Node late = exp(exp(exp(x)));
  const Node first = all_reduce_sum(late);
  const Node second = all_reduce_sum(x);
  const auto regions = nodes_of(graph, Offering(), {first, second});
  const auto place = [&](const Node& node) {
    return std::ranges::find(regions, ids({node})) - regions.begin();
  };
  CHECK(place(first) < place(second));
}

}  // namespace plexaura::testing::select_regions_test
