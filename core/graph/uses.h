#pragma once

#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// The readers of each value of a graph, and facts about its nodes. Built once for each compile.
class PLEXAURA_API Uses {
 public:
  explicit Uses(const Graph& graph, std::span<const Value> kept);
  const std::vector<NodeId>& readers(Value value) const;
  bool kept(Value value) const;  // true if the value is an output or an update of the program
  bool only_read_by(Value value, NodeId reader) const {
    return !kept(value) && readers(value) == std::vector{reader};
  }
  // True if the node depends on an input, a step scalar, an arena slice or a random op, and so changes in each run.
  // Other nodes are not computed again in programs that do not change the parameters.
  bool depends_on_feeds(NodeId node) const { return fed_[node]; }

 private:
  std::vector<std::vector<std::vector<NodeId>>> readers_;
  std::vector<std::vector<bool>> kept_;
  std::vector<bool> fed_;
};

// Marks the nodes of these values, and all nodes on which they depend.
PLEXAURA_API std::vector<bool> nodes_needed(const Graph& graph, std::span<const Value> values);

}  // namespace plexaura
