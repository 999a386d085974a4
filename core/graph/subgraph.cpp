#include "core/graph/subgraph.h"

#include <fmt/format.h>
#include <map>

#include "core/base/error.h"
#include "core/base/fnv.h"
#include "core/graph/structure.h"

namespace plexaura {

namespace {

bool is_operand(const Graph& graph, NodeId id) {
  const Leaf* leaf = as_leaf(*graph.record(id).op);
  return leaf != nullptr && leaf->kind() == LeafKind::operand;
}

std::size_t count_operands(const Graph& graph) {
  std::size_t count = 0;
  while (count < graph.size() && is_operand(graph, static_cast<NodeId>(count))) ++count;
  return count;
}

void check_leaves(const Graph& graph, std::size_t operands) {
  if (!graph.updates().empty()) throw InternalError("a subgraph has an update");
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Leaf* leaf = as_leaf(*graph.record(id).op);
    if (leaf == nullptr || leaf->kind() == LeafKind::constant) continue;
    if (leaf->kind() != LeafKind::operand || id >= operands || leaf->operand() != id)
      throw InternalError(fmt::format("a subgraph has the leaf {} as node {}", leaf->name(), id));
  }
}

bool same_record(const NodeRecord& a, const NodeRecord& b) {
  return a.inputs == b.inputs && a.types == b.types && *a.op == *b.op;
}

// Marks the nodes that compute `outputs`. Leaves out nodes that are needed only to compute values in `given`.
std::vector<bool> nodes_between(const Graph& graph, std::span<const Value> outputs,
                                const std::map<Value, Value>& given) {
  std::vector<bool> needed(graph.size(), false);
  for (const Value output : outputs)
    if (!given.contains(output)) needed[output.node] = true;
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;)
    if (needed[id])
      for (const Value input : graph.record(id).inputs)
        if (!given.contains(input)) needed[input.node] = true;
  return needed;
}

}  // namespace

Subgraph::Subgraph(std::shared_ptr<const Graph> graph, std::vector<Value> outputs)
    : graph_(std::move(graph)),
      outputs_(std::move(outputs)),
      operands_(count_operands(*graph_)),
      reads_(operands_, false),
      hash_(structure_hash(*graph_)) {
  check_leaves(*graph_, operands_);
  const auto note_read = [&](Value value) {
    if (value.node < operands_) reads_[value.node] = true;
  };
  for (NodeId id = 0; id < graph_->size(); ++id)
    for (const Value input : graph_->record(id).inputs) note_read(input);
  for (const Value output : outputs_) {
    note_read(output);
    hash_ = fnv(fmt::format("%{}.{} ", output.node, output.output), hash_);
  }
}

std::shared_ptr<const Subgraph> Subgraph::with_outputs(std::vector<Value> outputs) const {
  return std::make_shared<const Subgraph>(graph_, std::move(outputs));
}

bool Subgraph::operator==(const Subgraph& other) const {
  if (hash_ != other.hash_ || outputs_ != other.outputs_ || graph_->size() != other.graph_->size())
    return false;
  for (NodeId id = 0; id < graph_->size(); ++id)
    if (!same_record(graph_->record(id), other.graph_->record(id))) return false;
  return true;
}

std::string to_string(const Subgraph& graph) {
  return fmt::format("{} nodes {:016x}", graph.graph().size(), graph.hash());
}

std::shared_ptr<const Subgraph> extract(const Graph& source, std::span<const Value> outputs,
                                        std::span<const Value> operands) {
  auto graph = std::make_unique<Graph>(source.mode());
  std::map<Value, Value> mapped;
  for (const Value operand : operands) {
    const Graph::WithOrigin guard(*graph, source.record(operand.node).origin);
    mapped.emplace(operand, graph->operand(graph->size(), source.type(operand)).value());
  }
  const std::vector<bool> needed = nodes_between(source, outputs, mapped);
  for (NodeId id = 0; id < source.size(); ++id) {
    if (!needed[id]) continue;
    const NodeRecord& record = source.record(id);
    std::vector<Value> inputs;
    for (const Value input : record.inputs) inputs.push_back(mapped.at(input));
    const std::vector<Value> values = append_with_origin(*graph, record.op, inputs, record.origin);
    for (std::uint32_t output = 0; output < values.size(); ++output)
      mapped.emplace(Value{id, output}, values[output]);
  }
  std::vector<Value> results;
  for (const Value output : outputs) results.push_back(mapped.at(output));
  return std::make_shared<const Subgraph>(std::move(graph), std::move(results));
}

std::vector<std::vector<Value>> append_subgraph(Graph& target, const Subgraph& subgraph,
                                                std::span<const Value> operands) {
  std::vector<std::vector<Value>> values;
  for (const Value operand : operands) values.push_back({operand});
  const Graph& source = subgraph.graph();
  for (auto id = static_cast<NodeId>(operands.size()); id < source.size(); ++id) {
    const NodeRecord& record = source.record(id);
    std::vector<Value> inputs;
    for (const Value input : record.inputs) inputs.push_back(values[input.node][input.output]);
    values.push_back(append_with_origin(target, record.op, inputs, record.origin));
  }
  return values;
}

std::vector<Value> append_with_origin(Graph& target, std::shared_ptr<const Op> op,
                                      const std::vector<Value>& inputs, const Origin& origin) {
  const Graph::WithOrigin guard(target, origin);
  std::vector<Node> nodes;
  for (const Value input : inputs) nodes.emplace_back(target, input);
  std::vector<Value> values;
  for (const Node& output : target.append(std::move(op), nodes, std::source_location::current()))
    values.push_back(output.value());
  return values;
}

}  // namespace plexaura
