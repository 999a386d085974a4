#include "tests/support/random_graph/random_graph.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura::testing {

namespace {

constexpr std::size_t most_outputs = 3;

// All entries. Families of few kinds occur several times, so that graphs have ops of all families.
const std::vector<SketchEntry>& entries() {
  static const std::vector<SketchEntry> all = [] {
    std::vector<SketchEntry> list;
    const auto add = [&](const std::vector<SketchEntry>& family, int times) {
      for (int i = 0; i < times; ++i) list.insert(list.end(), family.begin(), family.end());
    };
    add(elementwise_entries(), 1);
    add(arranging_entries(), 1);
    add(reducing_entries(), 1);
    add(matrix_entries(), 2);
    add(window_entries(), 2);
    add(loss_entries(), 1);
    add(loop_entries(), 3);
    return list;
  }();
  return all;
}

// The last of the nodes that no node reads.
std::vector<Node> unread(const Graph& graph, const std::vector<Node>& nodes) {
  std::vector<bool> is_read(graph.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id)
    for (const Value input : graph.record(id).inputs) is_read[input.node] = true;
  std::vector<Node> found;
  for (auto node = nodes.rbegin(); node != nodes.rend() && found.size() < most_outputs; ++node)
    if (!is_read[node->id()] && node->shape().elements() > 0) found.push_back(*node);
  return found;
}

}  // namespace

Recipe random_recipe(std::uint64_t seed) {
  Random random(seed);
  Recipe recipe(static_cast<std::size_t>(random.below(10)) + 2);
  for (std::uint64_t& step : recipe) step = static_cast<std::uint64_t>(random.below(std::int64_t{1} << 40));
  const std::uint64_t kinds = entries().size();
  recipe.back() += kinds - recipe.back() % kinds + seed % kinds;
  return recipe;
}

RandomGraph::RandomGraph(const Recipe& recipe, DType dtype) : sketch_(graph_, dtype) {
  for (const std::uint64_t step : recipe) {
    sketch_.begin(step);
    try {
      entries()[static_cast<std::size_t>(step % entries().size())].add(sketch_);
    } catch (const UserError&) {
      ++refused_;
    }
  }
  for (const SketchLeaf& leaf : sketch_.leaves()) leaf_nodes_.push_back(leaf.node);
  outputs_ = unread(graph_, sketch_.nodes());
}

std::string RandomGraph::text() const {
  std::string text = sketch_.text();
  for (const Node& output : outputs_) text += fmt::format("// output: {}\n", sketch_.name_of(output));
  return text;
}

}  // namespace plexaura::testing
