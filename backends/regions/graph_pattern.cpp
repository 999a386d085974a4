#include "backends/regions/graph_pattern.h"

#include <set>

#include "core/graph/leaf.h"
#include "core/graph/op.h"

namespace plexaura {

PatternMatch::PatternMatch(const Graph& pattern, const std::vector<Node>& open, const Graph& graph)
    : pattern_(pattern), graph_(graph), open_(pattern.size(), false) {
  for (const Node& node : open) open_[node.id()] = true;
  for (NodeId id = 0; id < pattern.size(); ++id)
    if (as_leaf(*pattern.record(id).op) != nullptr && !is_constant({id, 0})) open_[id] = true;
}

bool PatternMatch::is_constant(Value in_pattern) const {
  const Leaf* leaf = as_leaf(*pattern_.record(in_pattern.node).op);
  return leaf != nullptr && leaf->kind() == LeafKind::constant;
}

bool PatternMatch::match(const Node& in_pattern, Value in_graph) {
  return match_value(in_pattern.value(), in_graph);
}

bool PatternMatch::match_value(Value in_pattern, Value in_graph) {
  if (const auto known = found_.find(in_pattern); known != found_.end()) return known->second == in_graph;
  if (pattern_.type(in_pattern) != graph_.type(in_graph)) return false;
  if (!open_[in_pattern.node] && !match_op(in_pattern, in_graph)) return false;
  found_.emplace(in_pattern, in_graph);
  return true;
}

bool PatternMatch::match_op(Value in_pattern, Value in_graph) {
  const NodeRecord& wanted = pattern_.record(in_pattern.node);
  const NodeRecord& record = graph_.record(in_graph.node);
  if (in_pattern.output != in_graph.output || wanted.inputs.size() != record.inputs.size()) return false;
  if (!(*wanted.op == *record.op)) return false;
  for (std::size_t i = 0; i < wanted.inputs.size(); ++i)
    if (!match_value(wanted.inputs[i], record.inputs[i])) return false;
  return true;
}

bool PatternMatch::find(const Node& in_pattern, const Uses& uses) {
  std::map<Value, Value> before = found_;
  if (find_value(in_pattern.value(), uses)) return true;
  found_ = std::move(before);
  return false;
}

bool PatternMatch::find_value(Value in_pattern, const Uses& uses) {
  if (found_.contains(in_pattern)) return true;
  const std::vector<Value>& inputs = pattern_.record(in_pattern.node).inputs;
  if (open_[in_pattern.node] || inputs.empty()) return false;
  for (const Value input : inputs)
    if (!find_value(input, uses)) return false;
  for (const NodeId reader : uses.readers(found_.at(inputs[0])))
    if (match_value(in_pattern, {reader, in_pattern.output})) return true;
  return false;
}

std::vector<NodeId> PatternMatch::nodes(NodeId first) const {
  std::set<NodeId> nodes;
  for (const auto& [in_pattern, in_graph] : found_)
    if (in_pattern.node >= first && !open_[in_pattern.node] && !is_constant(in_pattern))
      nodes.insert(in_graph.node);
  return {nodes.begin(), nodes.end()};
}

std::vector<Value> PatternMatch::constants(NodeId first) const {
  std::set<Value> values;
  for (const auto& [in_pattern, in_graph] : found_)
    if (in_pattern.node >= first && !open_[in_pattern.node] && is_constant(in_pattern))
      values.insert(in_graph);
  return {values.begin(), values.end()};
}

}  // namespace plexaura
