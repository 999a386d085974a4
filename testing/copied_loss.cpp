#include "testing/copied_loss.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/graph/print.h"
#include "core/graph/subgraph.h"
#include "core/graph/uses.h"

namespace plexaura::testing {

namespace {

// Returns the name of an input, a parameter or a buffer, and an empty text for any other node.
std::string label_of(const Graph& graph, NodeId id) {
  const Leaf* leaf = as_leaf(*graph.record(id).op);
  const bool has_value =
      leaf != nullptr && (leaf->kind() == LeafKind::input || leaf->kind() == LeafKind::parameter ||
                          leaf->kind() == LeafKind::buffer);
  return has_value ? leaf->label() : std::string();
}

std::map<std::string, NodeId> leaves_of(const Node& loss, const std::vector<bool>& needed) {
  std::map<std::string, NodeId> leaves;
  for (NodeId id = 0; id < needed.size(); ++id)
    if (needed[id] && !label_of(loss.graph(), id).empty()) leaves[label_of(loss.graph(), id)] = id;
  return leaves;
}

}  // namespace

CopiedLoss::CopiedLoss(const Node& loss, const std::vector<Feed>& values, std::string caller)
    : loss_(loss),
      values_(values),
      caller_(std::move(caller)),
      needed_(nodes_needed(loss.graph(), std::array{loss.value()})),
      leaves_(leaves_of(loss, needed_)) {
  for (const Feed& value : values) check_value(value);
  for (const auto& [name, id] : leaves_)
    if (std::ranges::find(values, name, &Feed::name) == values.end())
      fail(fmt::format("'{}' has no value; give it one of {}", name,
                       to_string(loss.graph().record(id).types[0])));
}

std::vector<Node> CopiedLoss::operator()(Graph& target, std::span<const Node> inputs) const {
  const Graph& graph = loss_.graph();
  std::map<Value, Value> copies;
  for (std::size_t i = 0; i < values_.size(); ++i)
    copies[{leaves_.at(values_[i].name()), 0}] = inputs[i].value();
  for (NodeId id = 0; id < needed_.size(); ++id) {
    if (!needed_[id] || copies.contains({id, 0})) continue;
    const NodeRecord& record = graph.record(id);
    std::vector<Value> operands;
    for (const Value input : record.inputs) operands.push_back(copies.at(input));
    const std::vector<Value> outputs = append_with_origin(target, record.op, operands, record.origin);
    for (std::uint32_t i = 0; i < outputs.size(); ++i) copies[{id, i}] = outputs[i];
  }
  return {Node(target, copies.at(loss_.value()))};
}

void CopiedLoss::fail(const std::string& rule) const {
  throw UserError(fmt::format("{}({}): {}", caller_, name_of(loss_.graph(), loss_.id()), rule));
}

void CopiedLoss::check_value(const Feed& value) const {
  const auto leaf = leaves_.find(value.name());
  if (leaf == leaves_.end()) fail(fmt::format("it does not need '{}'; leave that value out", value.name()));
  if (std::ranges::count(values_, value.name(), &Feed::name) > 1)
    fail(fmt::format("'{}' has two values; give it one", value.name()));
  const TensorType& type = loss_.graph().record(leaf->second).types[0];
  if (value.type() != type)
    fail(fmt::format("'{}' is {} and its value {}; give it one of its type", value.name(), to_string(type),
                     to_string(value.type())));
}

std::vector<Feed> values_needed(const Node& loss, const std::vector<Feed>& values) {
  const auto leaves = leaves_of(loss, nodes_needed(loss.graph(), std::array{loss.value()}));
  std::vector<Feed> needed;
  for (const Feed& value : values)
    if (leaves.contains(value.name())) needed.push_back(value);
  return needed;
}

}  // namespace plexaura::testing
