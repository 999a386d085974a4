#include "onnx/ops/known.h"

#include <algorithm>
#include <map>

namespace plexaura::onnx {

namespace {

constexpr std::int64_t largest_value = std::int64_t{64} << 20;  // bytes

class KnownNodes {
 public:
  explicit KnownNodes(const Graph& graph) : graph_(graph) {}

  // Computes all outputs of a node and those that it depends on. False if this is not possible.
  bool compute(NodeId id);
  Tensor take(Value value) { return std::move(outputs_.at(value.node)[value.output]); }

 private:
  bool run(NodeId id);

  const Graph& graph_;
  std::map<NodeId, std::vector<Tensor>> outputs_;
};

// Nodes are visited from the oldest to the newest one, without recursion, since a chain may be long.
bool KnownNodes::compute(NodeId id) {
  std::vector<NodeId> needed{id};
  for (std::size_t i = 0; i < needed.size(); ++i) {
    for (const Value input : graph_.record(needed[i]).inputs)
      if (std::ranges::find(needed, input.node) == needed.end()) needed.push_back(input.node);
  }
  std::ranges::sort(needed);
  return std::ranges::all_of(needed, [&](NodeId node) { return run(node); });
}

bool KnownNodes::run(NodeId id) {
  const NodeRecord& record = graph_.record(id);
  if (const Leaf* leaf = as_leaf(*record.op)) {
    if (leaf->kind() != LeafKind::constant) return false;
    outputs_[id].push_back(*leaf->value());
    return true;
  }
  const OpTraits traits = record.op->traits();
  const HostKernel kernel = record.op->reference();
  if (kernel == nullptr || traits.random || traits.collective) return false;
  std::vector<HostView> inputs;
  std::vector<HostView> results;
  for (const Value input : record.inputs)
    inputs.push_back({outputs_.at(input.node)[input.output].data(), &graph_.type(input)});
  for (const TensorType& type : record.types) {
    if (type.bytes() > largest_value) return false;
    outputs_[id].emplace_back(type);
  }
  for (std::size_t i = 0; i < record.types.size(); ++i)
    results.push_back({outputs_[id][i].data(), &record.types[i]});
  kernel(*record.op, {inputs, results});
  return true;
}

}  // namespace

std::optional<Tensor> evaluate_known(const Node& node) {
  KnownNodes nodes(node.graph());
  if (!nodes.compute(node.id())) return std::nullopt;
  return nodes.take(node.value());
}

}  // namespace plexaura::onnx
