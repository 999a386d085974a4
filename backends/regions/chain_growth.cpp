#include "backends/regions/chain_growth.h"

#include <algorithm>

namespace plexaura {

ChainGrowth::ChainGrowth(const Graph& graph, const Uses& uses, NodeId last)
    : graph_(graph), uses_(uses), nodes_{last} {}

bool ChainGrowth::grow(std::size_t most_nodes, std::size_t most_inputs, const Accepts& accepts) {
  if (nodes_.size() == most_nodes) return false;
  std::set<NodeId> candidates;
  for (const NodeId node : nodes_)
    for (const Value input : graph_.record(node).inputs)
      if (can_take(input, accepts)) candidates.insert(input.node);
  for (auto node = candidates.rbegin(); node != candidates.rend(); ++node) {
    nodes_.insert(*node);
    if (inputs().size() <= most_inputs) return true;
    nodes_.erase(*node);
  }
  return false;
}

std::string ChainGrowth::ops() const {
  std::string ops;
  for (const NodeId node : nodes_) ops.append("+").append(graph_.record(node).op->name());
  return ops.substr(1);
}

bool ChainGrowth::can_take(Value value, const Accepts& accepts) const {
  if (nodes_.contains(value.node) || uses_.kept(value)) return false;
  if (graph_.type(value).shape != graph_.type({*nodes_.rbegin(), 0}).shape) return false;
  const auto is_inside = [&](NodeId reader) { return nodes_.contains(reader); };
  return std::ranges::all_of(uses_.readers(value), is_inside) && accepts(value.node);
}

std::vector<Value> inputs_of(const Graph& graph, const std::set<NodeId>& nodes) {
  std::vector<Value> inputs;
  for (const NodeId node : nodes)
    for (const Value input : graph.record(node).inputs)
      if (!nodes.contains(input.node) && std::ranges::find(inputs, input) == inputs.end())
        inputs.push_back(input);
  return inputs;
}

bool is_elementwise(const Graph& graph, NodeId node) {
  const NodeRecord& record = graph.record(node);
  if (record.types.size() != 1 || record.inputs.empty()) return false;
  const Shape& shape = record.types[0].shape;
  return shape.elements() > 0 && std::ranges::all_of(record.inputs, [&](Value input) {
           const Shape& operand = graph.type(input).shape;
           return operand == shape || operand.elements() == 1;
         });
}

}  // namespace plexaura
