#include <algorithm>
#include <array>

#include "backends/cpu/fast/batch_norm/batch_norm_kernels.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/cpu/region_match.h"
#include "backends/cpu/relu_mask.h"
#include "core/ops/batch_norm.h"

namespace plexaura::fast {

namespace {

constexpr auto norm_and_relu = "batch_norm+relu";
constexpr auto norm_add_relu = "batch_norm+add+relu";
constexpr auto inference_and_relu = "batch_norm_inference+relu";
constexpr auto inference_add_relu = "batch_norm_inference+add+relu";
constexpr auto masked_grad = "gt+where+batch_norm_grad";

// Region inputs: those of the op, then what the region adds: the addend, or in backward the ReLU's output.
constexpr std::size_t forward_inputs = 3;
constexpr std::size_t inference_inputs = 5;
constexpr std::size_t grad_inputs = 5;
constexpr std::size_t grad_out = 4;
constexpr std::size_t masked_output = 3;

bool is_inference(const std::string& kind) { return kind.starts_with("batch_norm_inference"); }
bool is_backward(const std::string& kind) { return kind == "batch_norm_grad" || kind == masked_grad; }
bool is_known(const std::string& kind) {
  constexpr std::array kinds{"batch_norm", norm_and_relu,          norm_add_relu,      "batch_norm_grad",
                             masked_grad,  "batch_norm_inference", inference_and_relu, inference_add_relu};
  return std::ranges::find(kinds, kind) != kinds.end();
}

// The op among the region's nodes that has the options.
const BatchNormOp& norm_of(const RegionQuery& query) {
  for (std::size_t i = 0; i < query.region.nodes.size(); ++i)
    if (query.op(i).name().starts_with("batch_norm")) return op_cast<BatchNormOp>(query.op(i));
  return op_cast<BatchNormOp>(query.op());
}

bool is_norm(const Graph& graph, Value value) {
  return value.output == 0 &&
         (is_op(graph, value.node, "batch_norm") || is_op(graph, value.node, "batch_norm_inference"));
}

std::vector<Value> outputs_with(const Graph& graph, NodeId norm, Value result) {
  std::vector<Value> outputs{result};
  for (std::uint32_t i = 1; i < graph.record(norm).types.size(); ++i) outputs.push_back({norm, i});
  return outputs;
}

std::vector<Region> match_relu(const Graph& graph, NodeId relu, const Uses& uses) {
  const Value before = graph.record(relu).inputs[0];
  if (!uses.only_read_by(before, relu)) return {};
  const auto kind = [&](NodeId norm, const char* rest) {
    return std::string(graph.record(norm).op->name()) + rest;
  };
  if (is_norm(graph, before))
    return {{kind(before.node, "+relu"),
             {before.node, relu},
             graph.record(before.node).inputs,
             outputs_with(graph, before.node, {relu, 0})}};
  if (!is_op(graph, before.node, "add")) return {};
  const std::vector<Value>& operands = graph.record(before.node).inputs;
  std::vector<Region> regions;
  for (std::size_t side = 0; side < 2; ++side) {
    const Value normal = operands[side];
    const Value addend = operands[1 - side];
    if (!is_norm(graph, normal) || addend.node == normal.node || !uses.only_read_by(normal, before.node))
      continue;
    if (graph.type(addend) != graph.type(normal)) continue;
    std::vector<Value> inputs = graph.record(normal.node).inputs;
    inputs.push_back(addend);
    regions.push_back({kind(normal.node, "+add+relu"),
                       {normal.node, before.node, relu},
                       std::move(inputs),
                       outputs_with(graph, normal.node, {relu, 0})});
  }
  return regions;
}

// The masked gradient is an output too where somebody else, the skip path, reads it.
std::vector<Region> match_grad(const Graph& graph, NodeId norm, const Uses& uses) {
  const Value grad = graph.record(norm).inputs[grad_out];
  const auto mask = find_relu_mask(graph, grad, uses);
  if (!mask) return {};
  std::vector<Value> inputs = graph.record(norm).inputs;
  inputs[grad_out] = mask->grad;
  inputs.push_back(mask->y);
  inputs.insert(inputs.end(), mask->zeros.begin(), mask->zeros.end());
  std::vector<Value> outputs{{norm, 0}, {norm, 1}, {norm, 2}};
  if (!uses.only_read_by(grad, norm)) outputs.push_back(grad);
  return {{masked_grad, {mask->compare, grad.node, norm}, std::move(inputs), std::move(outputs)}};
}

// A scalar or a value per channel, and no image.
bool is_small(const RegionQuery& query, Value value) { return query.type(value).shape.rank() < 2; }

// The layouts that large operands come in and that have vectors of channels; else blocked ones.
std::vector<Layout> layouts_to_offer(const RegionQuery& query) {
  const Shape& shape = query.type(query.region.inputs[0]).shape;
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < query.given.size(); ++i)
    if (query.given[i] && !is_small(query, query.region.inputs[i]) && channel_view(*query.given[i], shape) &&
        std::ranges::find(layouts, *query.given[i]) == layouts.end())
      layouts.push_back(*query.given[i]);
  if (layouts.empty()) layouts.push_back(blocked_layout(shape));
  return layouts;
}

std::shared_ptr<const Kernel> make_backward(const BatchNormBackward& norm, bool masks, bool writes_masked) {
  const auto run = [=](const Binding& at) {
    norm.run({floats(at.inputs[0]), floats(at.inputs[1]), floats(at.inputs[2]), floats(at.inputs[3]),
              floats(at.inputs[4]), masks ? floats(at.inputs[grad_inputs]) : nullptr, floats(at.outputs[0]),
              floats(at.outputs[1]), floats(at.outputs[2]),
              writes_masked ? floats(at.outputs[masked_output]) : nullptr},
             reinterpret_cast<double*>(at.workspace));
  };
  return make_kernel(run, norm.workspace());
}

std::shared_ptr<const Kernel> make_forward(const BatchNormForward& norm, bool adds) {
  const auto run = [=](const Binding& at) {
    norm.train({floats(at.inputs[0]), floats(at.inputs[1]), floats(at.inputs[2]),
                adds ? floats(at.inputs[forward_inputs]) : nullptr, floats(at.outputs[0]),
                floats(at.outputs[1]), floats(at.outputs[2])},
               reinterpret_cast<double*>(at.workspace));
  };
  return make_kernel(run, norm.workspace());
}

std::shared_ptr<const Kernel> make_inference(const BatchNormForward& norm, bool adds) {
  return make_kernel([=](const Binding& at) {
    norm.infer(
        {floats(at.inputs[0]), floats(at.inputs[1]), floats(at.inputs[2]),
         adds ? floats(at.inputs[inference_inputs]) : nullptr, floats(at.outputs[0]), nullptr, nullptr},
        floats(at.inputs[3]), floats(at.inputs[4]));
  });
}

std::shared_ptr<const Kernel> make_for(const RegionQuery& query, const ChannelView& view) {
  const std::string& kind = query.region.kind;
  const auto epsilon = static_cast<float>(norm_of(query).options().epsilon);
  if (is_backward(kind))
    return make_backward({view, epsilon}, kind == masked_grad, query.region.outputs.size() > masked_output);
  const BatchNormForward norm{view, epsilon, kind.ends_with("relu")};
  const bool adds = kind == norm_add_relu || kind == inference_add_relu;
  return is_inference(kind) ? make_inference(norm, adds) : make_forward(norm, adds);
}

Candidate candidate_for(const RegionQuery& query, const Layout& layout) {
  const auto layout_for = [&](Value value) {
    return is_small(query, value) ? Layout::row_major(query.type(value).shape.rank()) : layout;
  };
  const bool backward = is_backward(query.region.kind);
  Candidate candidate;
  candidate.implementation = "fast";
  for (const Value value : query.region.inputs) candidate.inputs.push_back(layout_for(value));
  for (const Value value : query.region.outputs) candidate.outputs.push_back(layout_for(value));
  const ChannelView view = *channel_view(layout, query.type(query.region.inputs[0]).shape);
  const bool writes_masked = query.region.outputs.size() > masked_output;
  if (backward) candidate.in_place = {{writes_masked ? masked_output : 0, grad_out}};
  candidate.seconds = seconds_of_traffic(query, candidate, costs::traffic_of_batch_norm);
  candidate.make = [query, view](bool) { return make_for(query, view); };
  return candidate;
}

class BatchNormSource final : public KernelSource {
 public:
  std::vector<Region> match(const Graph& graph, NodeId last, const Uses& uses) const override {
    if (!is_float32(graph, {last, 0}) || !has_elements(graph, {last, 0})) return {};
    if (is_op(graph, last, "relu")) return match_relu(graph, last, uses);
    if (is_op(graph, last, "batch_norm_grad")) return match_grad(graph, last, uses);
    return {};
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates;
    if (!is_known(query.region.kind) || !is_dense_float32(query)) return candidates;
    for (const Layout& layout : layouts_to_offer(query)) candidates.push_back(candidate_for(query, layout));
    return candidates;
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_batch_norm_source() { return std::make_unique<BatchNormSource>(); }

}  // namespace plexaura::fast
