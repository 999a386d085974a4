#pragma once

#include <map>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/uses.h"

namespace plexaura {

// Finds the nodes that a builder has appended to a graph. The pattern is a small graph to which the same
// builder was applied, with inputs of the same types. So a change of the builder needs no change of the
// search.
class PatternMatch {
 public:
  // The inputs of the pattern, and the nodes `open`, stand for any value of their type.
  PatternMatch(const Graph& pattern, const std::vector<Node>& open, const Graph& graph);

  // Compares a value of the pattern with a value of the graph, and all values from which these are computed.
  // Returns false if they differ. Then the match must not be used any more.
  bool match(const Node& in_pattern, Value in_graph);
  // Looks for a value of the pattern among the readers of values that match. Returns false, and changes nothing, if the
  // graph has none.
  bool find(const Node& in_pattern, const Uses& uses);

  // Returns the value of the graph that matches this value of the pattern.
  Value operator[](const Node& in_pattern) const { return found_.at(in_pattern.value()); }
  // Returns the nodes of the graph that match ops of the pattern from the node `first` on, in topological order.
  std::vector<NodeId> nodes(NodeId first = 0) const;
  // Returns the constants of the graph that match constants of the pattern from the node `first` on.
  std::vector<Value> constants(NodeId first = 0) const;

 private:
  bool is_constant(Value in_pattern) const;
  bool match_value(Value in_pattern, Value in_graph);
  bool match_op(Value in_pattern, Value in_graph);
  bool find_value(Value in_pattern, const Uses& uses);

  const Graph& pattern_;
  const Graph& graph_;
  std::vector<bool> open_;
  std::map<Value, Value> found_;  // maps values of the pattern to values of the graph
};

}  // namespace plexaura
