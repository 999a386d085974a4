#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "tests/support/random_graph/sketch.h"

namespace plexaura::testing {

// The steps that build a random graph: a number for each, which says what it adds. Any list of numbers makes a graph.
using Recipe = std::vector<std::uint64_t>;

// Returns up to eleven steps. Seeds that follow each other end with different kinds of nodes, until each kind had its turn.
Recipe random_recipe(std::uint64_t seed);

// A graph that a recipe builds: all kinds of ops on values of any shapes.
class RandomGraph {
 public:
  RandomGraph(const Recipe& recipe, DType dtype);

  Graph& graph() { return graph_; }
  const std::vector<SketchLeaf>& leaves() const { return sketch_.leaves(); }
  const std::vector<Node>& leaf_nodes() const { return leaf_nodes_; }
  // Values that no node reads, the last ones; none of them is empty.
  const std::vector<Node>& outputs() const { return outputs_; }
  int refused() const { return refused_; }  // the number of steps whose op refused its operands
  std::string text() const;                 // as lines of C++

 private:
  Graph graph_;
  Sketch sketch_;
  std::vector<Node> leaf_nodes_;
  std::vector<Node> outputs_;
  int refused_ = 0;
};

// Returns a shorter recipe that still fails, from which no step can be left out.
template <class Fails>
Recipe shrink(Recipe recipe, const Fails& fails) {
  for (std::size_t count = recipe.size() / 2 + 1; count > 0; count /= 2)
    for (std::size_t at = 0; at + count <= recipe.size();) {
      Recipe shorter = recipe;
      const auto first = shorter.begin() + static_cast<std::ptrdiff_t>(at);
      shorter.erase(first, first + static_cast<std::ptrdiff_t>(count));
      if (fails(shorter)) {
        recipe = std::move(shorter);
        at = 0;
      } else {
        ++at;
      }
    }
  return recipe;
}

}  // namespace plexaura::testing
