#include "backends/cpu/fast/softmax/softmax_grad_regions.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "backends/regions/region_match.h"
#include "core/ops/reduce.h"

namespace plexaura::fast {

namespace {

struct OperandPair {
  Value first;
  Value second;
};

// Returns the operands of an op of two values, if `value` is the result of such an op of this name.
std::optional<OperandPair> operands_of(const Graph& graph, Value value, std::string_view name) {
  if (!is_op(graph, value.node, name)) return std::nullopt;
  const std::vector<Value>& inputs = graph.record(value.node).inputs;
  return OperandPair{inputs[0], inputs[1]};
}

// Returns the value that `sum` adds up over the last axis, which it keeps.
std::optional<Value> summed_over_rows(const Graph& graph, Value sum) {
  if (!is_op(graph, sum.node, "sum")) return std::nullopt;
  const Value added = graph.record(sum.node).inputs[0];
  const ReduceOptions& options = op_cast<Reduce>(*graph.record(sum.node).op).options();
  const std::vector<std::int64_t> last_axis{graph.type(added).shape.rank() - 1};
  if (!options.keepdims || options.axes != last_axis) return std::nullopt;
  return added;
}

// Returns the region of these nodes, whose last one has the result, if both inputs have the result's type.
std::vector<Region> region_of(const Graph& graph, const char* kind, std::vector<NodeId> nodes,
                              OperandPair inputs) {
  const TensorType& type = graph.type({nodes.back(), 0});
  if (graph.type(inputs.first) != type || graph.type(inputs.second) != type) return {};
  std::ranges::sort(nodes);
  return {{kind, nodes, {inputs.first, inputs.second}, {{nodes.back(), 0}}}};
}

}  // namespace

std::vector<Region> match_softmax_grad(const Graph& graph, NodeId last) {
  const auto factors = operands_of(graph, {last, 0}, "mul");
  if (!factors) return {};
  for (const auto& [y, difference] : {*factors, OperandPair{factors->second, factors->first}}) {
    const auto terms = operands_of(graph, difference, "sub");
    if (!terms) continue;
    const auto product = summed_over_rows(graph, terms->second);
    if (!product) continue;
    const auto summed = operands_of(graph, *product, "mul");
    if (!summed) continue;
    const bool in_order = summed->first == terms->first && summed->second == y;
    const bool swapped = summed->second == terms->first && summed->first == y;
    if (in_order || swapped)
      return region_of(graph, softmax_grad, {product->node, terms->second.node, difference.node, last},
                       {y, terms->first});
  }
  return {};
}

std::vector<Region> match_log_softmax_grad(const Graph& graph, NodeId last) {
  const auto terms = operands_of(graph, {last, 0}, "sub");
  if (!terms) return {};
  const auto factors = operands_of(graph, terms->second, "mul");
  if (!factors) return {};
  for (const auto& [exponential, total] : {*factors, OperandPair{factors->second, factors->first}}) {
    if (!is_op(graph, exponential.node, "exp") || summed_over_rows(graph, total) != terms->first) continue;
    return region_of(graph, log_softmax_grad, {exponential.node, total.node, terms->second.node, last},
                     {graph.record(exponential.node).inputs[0], terms->first});
  }
  return {};
}

}  // namespace plexaura::fast
