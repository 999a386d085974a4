#include "onnx/export/unroll.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "core/graph/subgraph.h"
#include "core/ops/concat.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/scan/scan_op.h"

namespace plexaura::onnx {

namespace {

constexpr std::int64_t most_nodes = 100'000;

Node step_of(const Node& stacked, std::int64_t step) {
  return reshape(slice(stacked, {.axis = 0, .start = step, .stop = step + 1}),
                 element_of(stacked.type()).shape.extents());
}

// Joins the values of all steps along a new axis 0.
Node stacked_steps(Graph& graph, const std::vector<Node>& steps, const TensorType& type) {
  if (steps.empty()) return graph.constant(Tensor(type));
  std::vector<std::int64_t> extents = type.shape.extents();
  extents[0] = 1;
  std::vector<Operand> rows;
  for (const Node& step : steps) rows.emplace_back(reshape(step, extents));
  return concat(std::move(rows), 0);
}

// Appends the nodes of all steps of a loop, and returns the values that replace its outputs.
std::vector<Value> append_steps(Graph& target, const NodeRecord& loop, const Scan& scan,
                                const std::vector<Value>& inputs) {
  const ScanForm& form = scan.form();
  const auto nodes = form.steps * static_cast<std::int64_t>(scan.body().graph().size());
  if (nodes > most_nodes)
    throw UserError(
        fmt::format("{}: the loop has {} steps and would become {} nodes of ONNX, but the export makes at "
                    "most {} of a loop; export the graph of a shorter sequence",
                    to_string(loop.origin), form.steps, nodes, most_nodes));
  const Graph::WithOrigin origin(target, loop.origin);
  std::vector<Value> operands = inputs;
  std::vector<std::vector<Node>> collected(scan.outputs() - form.carries,
                                           std::vector<Node>(static_cast<std::size_t>(form.steps)));
  for (std::int64_t i = 0; i < form.steps; ++i) {
    const std::int64_t step = form.reverse ? form.steps - 1 - i : i;
    for (std::size_t x = form.carries; x < form.carries + form.stacked; ++x)
      operands[x] = step_of(Node(target, inputs[x]), step).value();
    const auto values = append_subgraph(target, scan.body(), operands);
    const std::vector<Value>& outputs = scan.body().outputs();
    std::vector<Value> results;
    for (const Value output : outputs) results.push_back(values[output.node][output.output]);
    for (std::size_t carry = 0; carry < form.carries; ++carry) operands[carry] = results[carry];
    for (std::size_t k = 0; k < collected.size(); ++k)
      collected[k][static_cast<std::size_t>(step)] = Node(target, results[form.carries + k]);
  }
  std::vector<Value> results(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(form.carries));
  for (std::size_t k = 0; k < collected.size(); ++k)
    results.push_back(stacked_steps(target, collected[k], loop.types[form.carries + k]).value());
  return results;
}

bool has_loop(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id)
    if (as_scan(*graph.record(id).op) != nullptr) return true;
  return false;
}

PassGraph without_outer_loops(const PassGraph& from) {
  PassGraph to{std::make_unique<Graph>(from.graph->mode()), {}};
  std::vector<std::vector<Value>> replaced;
  for (NodeId id = 0; id < from.graph->size(); ++id) {
    const NodeRecord& record = from.graph->record(id);
    std::vector<Value> inputs;
    for (const Value input : record.inputs) inputs.push_back(replaced[input.node][input.output]);
    const Scan* scan = as_scan(*record.op);
    replaced.push_back(scan == nullptr ? append_with_origin(*to.graph, record.op, inputs, record.origin)
                                       : append_steps(*to.graph, record, *scan, inputs));
  }
  for (const Value root : from.roots) to.roots.push_back(replaced[root.node][root.output]);
  return to;
}

}  // namespace

PassGraph unroll(const Graph& graph, std::span<const Value> roots) {
  PassGraph result = prune(graph, roots, false);
  while (has_loop(*result.graph)) {
    const PassGraph flat = without_outer_loops(result);
    result = prune(*flat.graph, flat.roots, false);
  }
  return result;
}

}  // namespace plexaura::onnx
