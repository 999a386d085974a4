#include "testing/wrong_ops.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "core/graph/print.h"
#include "core/graph/uses.h"
#include "testing/run.h"

namespace plexaura::testing {

namespace {

// The distinct values that a node reads, and for each operand its index among them.
struct Operands {
  std::vector<Value> values;
  std::vector<std::size_t> places;
};

Operands operands_of(const NodeRecord& record) {
  Operands operands;
  for (const Value input : record.inputs) {
    const auto found = std::ranges::find(operands.values, input);
    operands.places.push_back(static_cast<std::size_t>(found - operands.values.begin()));
    if (found == operands.values.end()) operands.values.push_back(input);
  }
  return operands;
}

BuildFunction alone(const NodeRecord& record, const Operands& operands) {
  return [&](Graph&, std::span<const Node> inputs) {
    std::vector<Operand> given;
    for (const std::size_t place : operands.places) given.emplace_back(inputs[place]);
    return apply_all(record.op, given);
  };
}

bool is_differentiated(const Graph& graph, NodeId id) {
  const NodeRecord& record = graph.record(id);
  const auto is_float64 = [](const TensorType& type) { return type.dtype == DType::float64; };
  const auto is_other = [](const TensorType& type) {
    return is_floating(type.dtype) && type.dtype != DType::float64;
  };
  const auto type_of = [&](Value value) { return graph.type(value); };
  return std::ranges::any_of(record.types, is_float64) && std::ranges::none_of(record.types, is_other) &&
         std::ranges::any_of(record.inputs, is_float64, type_of) &&
         std::ranges::none_of(record.inputs, is_other, type_of);
}

// Computes the values that the nodes read if the inputs of the graph have the given values.
std::map<Value, Tensor> values_read(Graph& graph, const std::vector<NodeId>& nodes,
                                    const std::vector<Tensor>& inputs, const StepBlock& block,
                                    Backend& backend) {
  std::set<Value> values;
  for (const NodeId id : nodes) values.insert(graph.record(id).inputs.begin(), graph.record(id).inputs.end());
  std::vector<Node> read;
  for (const Value value : values) read.emplace_back(graph, value);
  const std::vector<Tensor> results = Runner(graph, read, backend)(inputs, block);
  std::map<Value, Tensor> found;
  for (std::size_t i = 0; i < read.size(); ++i) found.emplace(read[i].value(), results[i]);
  return found;
}

bool has_kink(const GradientReport& report) {
  return std::ranges::any_of(report.failures, [](const GradientEntry& entry) {
    return !entry.input.empty() && !entry.note.empty();
  });
}

// Returns the sentence about one wrong op. The gradient of a stop_gradient differs from the differences by
// design. So do the gradients of all functions that contain one.
std::string verdict(const std::string& name, const NodeRecord& record, const GradientReport& report) {
  if (record.op->name() == "stop_gradient") return fmt::format("{} is on the path from the input", name);
  if (has_kink(report)) return fmt::format("{} is not differentiable at the values that it meets", name);
  return fmt::format("the gradient of {} is wrong by itself, at the values that it meets", name);
}

}  // namespace

std::vector<NodeId> nodes_between(std::span<const Node> from, std::span<const Node> to) {
  if (to.empty()) return {};
  const Graph& graph = to.front().graph();
  std::vector<bool> follows(graph.size(), false);
  std::vector<Value> ends;
  for (const Node& node : from) follows[node.id()] = true;
  for (const Node& node : to) ends.push_back(node.value());
  const std::vector<bool> leads = nodes_needed(graph, ends);
  for (NodeId id = 0; id < graph.size(); ++id)
    for (const Value input : graph.record(id).inputs)
      if (follows[input.node]) follows[id] = true;
  std::vector<NodeId> nodes;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (follows[id] && leads[id] && !graph.record(id).inputs.empty()) nodes.push_back(id);
  return nodes;
}

std::vector<std::string> wrong_ops(Graph& graph, const std::vector<NodeId>& nodes,
                                   const std::vector<Tensor>& inputs, const StepBlock& block,
                                   Backend& backend, const CheckFunction& check) {
  const std::map<Value, Tensor> values = values_read(graph, nodes, inputs, block, backend);
  std::vector<std::string> found;
  bool is_wrong = false;
  for (const NodeId id : nodes) {
    const NodeRecord& record = graph.record(id);
    if (is_wrong || !is_differentiated(graph, id)) continue;
    const Operands operands = operands_of(record);
    std::vector<Tensor> met;
    for (const Value value : operands.values) met.push_back(values.at(value));
    const GradientReport report = check(alone(record, operands), met);
    if (report.passed) continue;
    found.push_back(verdict(name_of(graph, id), record, report));
    is_wrong = record.op->name() != "stop_gradient" && !has_kink(report);
  }
  return found;
}

}  // namespace plexaura::testing
