#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

// Returns the values that the nodes read from other nodes, in the order in which they first read them.
std::vector<Value> inputs_of(const Graph& graph, const std::set<NodeId>& nodes);

// A chain of elementwise ops whose results have one shape. Only ops of the chain read its inner results. It starts with
// the last op, and grows backwards.
class ChainGrowth {
 public:
  // Returns true if the chain may contain this op.
  using Accepts = std::function<bool(NodeId)>;
  ChainGrowth(const Graph& graph, const Uses& uses, NodeId last);

  // Adds the last node of the graph that `accepts` allows, whose results only the chain reads, and that keeps the chain
  // within `most_nodes` and `most_inputs`. Returns false if there is none.
  bool grow(std::size_t most_nodes, std::size_t most_inputs, const Accepts& accepts);

  const std::set<NodeId>& nodes() const { return nodes_; }
  // Returns the inputs in the order in which the chain first reads them.
  std::vector<Value> inputs() const { return inputs_of(graph_, nodes_); }
  // Returns the names of the ops, such as "gt+mul+where".
  std::string ops() const;

 private:
  bool can_take(Value value, const Accepts& accepts) const;

  const Graph& graph_;
  const Uses& uses_;
  std::set<NodeId> nodes_;
};

// True if the op has one result, which has elements, and if each operand has the result's shape or one
// element.
bool is_elementwise(const Graph& graph, NodeId node);

}  // namespace plexaura
