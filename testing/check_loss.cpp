#include "testing/check_loss.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/graph/print.h"
#include "core/graph/subgraph.h"
#include "core/graph/uses.h"

namespace plexaura {

namespace {

// Returns the name of an input, a parameter or a buffer, and an empty text for any other node.
std::string label_of(const Graph& graph, NodeId id) {
  const Leaf* leaf = as_leaf(*graph.record(id).op);
  const bool has_value =
      leaf != nullptr && (leaf->kind() == LeafKind::input || leaf->kind() == LeafKind::parameter ||
                          leaf->kind() == LeafKind::buffer);
  return has_value ? leaf->label() : std::string();
}

// The part of a graph that computes a loss, as a function of its named leaves.
class Copied {
 public:
  Copied(const Node& loss, const std::vector<Feed>& values)
      : loss_(loss), values_(values), needed_(nodes_needed(loss.graph(), std::array{loss.value()})) {
    for (NodeId id = 0; id < needed_.size(); ++id)
      if (needed_[id] && !label_of(loss.graph(), id).empty()) leaves_[label_of(loss.graph(), id)] = id;
    for (const Feed& value : values) check_value(value);
    for (const auto& [name, id] : leaves_)
      if (std::ranges::find(values, name, &Feed::name) == values.end())
        fail(fmt::format("'{}' has no value; give it one of {}", name,
                         to_string(loss.graph().record(id).types[0])));
  }

  std::vector<Node> operator()(Graph& target, std::span<const Node> inputs) const {
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

 private:
  [[noreturn]] void fail(const std::string& rule) const {
    throw UserError(fmt::format("check_gradients({}): {}", name_of(loss_.graph(), loss_.id()), rule));
  }

  void check_value(const Feed& value) const {
    const auto leaf = leaves_.find(value.name());
    if (leaf == leaves_.end()) fail(fmt::format("it does not need '{}'; leave that value out", value.name()));
    if (std::ranges::count(values_, value.name(), &Feed::name) > 1)
      fail(fmt::format("'{}' has two values; give it one", value.name()));
    const TensorType& type = loss_.graph().record(leaf->second).types[0];
    if (value.type() != type)
      fail(fmt::format("'{}' is {} and its value {}; give it one of its type", value.name(), to_string(type),
                       to_string(value.type())));
  }

  Node loss_;
  const std::vector<Feed>& values_;
  std::vector<bool> needed_;
  std::map<std::string, NodeId> leaves_;
};

}  // namespace

GradientReport check_gradients(const Node& loss, const std::vector<Feed>& values, Backend& backend,
                               const GradientOptions& options) {
  const Copied copied(loss, values);
  std::vector<Tensor> tensors;
  for (const Feed& value : values) tensors.push_back(value.tensor());
  return check_gradients(BuildFunction(copied), tensors, backend, options);
}

}  // namespace plexaura
