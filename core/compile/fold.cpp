#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/compile/rebuild.h"
#include "core/device/evaluate.h"
#include "core/graph/print.h"

namespace plexaura {

namespace {

constexpr std::int64_t largest_constant = 1 << 20;  // in bytes

const Tensor* constant_of(const Graph& graph, Value value) {
  const Leaf* leaf = as_leaf(*graph.record(value.node).op);
  return leaf != nullptr && leaf->kind() == LeafKind::constant ? leaf->value().get() : nullptr;
}

bool foldable(const NodeRecord& record) {
  const OpTraits traits = record.op->traits();
  const bool small = std::ranges::all_of(
      record.types, [](const TensorType& type) { return type.bytes() <= largest_constant; });
  return !record.inputs.empty() && small && !traits.random && !traits.collective;
}

std::vector<Tensor> evaluate_named(Backend& backend, const Graph& graph, NodeId id,
                                   const std::vector<Tensor>& inputs) {
  try {
    return evaluate(backend, graph, id, inputs);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", name_of(graph, id), error.what()));
  }
}

}  // namespace

PassGraph fold(const PassGraph& from, Backend& backend) {
  const auto replace = [&](Graph& target, NodeId id,
                           const std::vector<Value>& inputs) -> std::optional<std::vector<Value>> {
    const NodeRecord& record = from.graph->record(id);
    if (!foldable(record)) return std::nullopt;
    std::vector<Tensor> tensors;
    for (const Value input : inputs) {
      const Tensor* tensor = constant_of(target, input);
      if (tensor == nullptr) return std::nullopt;
      tensors.push_back(*tensor);
    }
    std::vector<Tensor> results = evaluate_named(backend, *from.graph, id, tensors);
    if (results.empty()) return std::nullopt;
    std::vector<Value> outputs;
    for (Tensor& result : results) {
      auto leaf = std::make_shared<Leaf>(std::make_shared<const Tensor>(std::move(result)));
      outputs.push_back(append_with_origin(target, std::move(leaf), {}, record.origin)[0]);
    }
    return outputs;
  };
  const PassGraph folded = rebuild(
      *from.graph, from.roots, [](NodeId) { return true; }, replace);
  return prune(*folded.graph, folded.roots);
}

}  // namespace plexaura
