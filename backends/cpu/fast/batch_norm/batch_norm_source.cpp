#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "backends/cpu/fast/batch_norm/batch_norm_kernels.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/cpu/region_match.h"
#include "backends/cpu/relu_mask.h"
#include "core/ops/batch_norm.h"

namespace plexaura::fast {

namespace {

// The kinds of regions are their ops. Forward: the moments, if they are those of this very input, normalise, an
// addition, relu. Backward: relu's mask, the gradient of normalise, an addition, and those of the moments.
constexpr auto moments_first = "moments+";
constexpr auto masked_first = "gt+where+";
constexpr auto total_grad = "normalise_grad+moments_grad+add";
constexpr auto total_grad_and_more = "normalise_grad+add+moments_grad+add";

// Region inputs: those of normalise or its gradient, then what the region adds.
constexpr std::size_t moments_inputs = 3;  // without mean and inverse
constexpr std::size_t grad_inputs = 5;
constexpr std::size_t grad_out = 4;
// Region outputs: the result, then those of the moments, or of the gradients of scale and shift, and the mask.
constexpr std::size_t masked_output = 3;

bool is_forward(const std::string& kind) {
  constexpr std::array kinds{"normalise", "normalise+relu", "normalise+add+relu"};
  const auto rest = std::string_view(kind).substr(kind.starts_with(moments_first) ? 8 : 0);
  return std::ranges::find(kinds, rest) != kinds.end();
}
bool is_total_grad(const std::string& kind) {
  return kind.ends_with(total_grad) || kind.ends_with(total_grad_and_more);
}
bool is_known(const std::string& kind) {
  return is_forward(kind) || is_total_grad(kind) || kind == "moments" || kind == "moments_grad" ||
         kind == "normalise_grad";
}

// Whether both gradients are of one input, its mean and inverse, so that one adds to the other what the moments
// contribute.
bool are_partners(const Graph& graph, NodeId normal, NodeId moments, const Uses& uses) {
  const std::vector<Value>& of_normal = graph.record(normal).inputs;
  const std::vector<Value>& of_moments = graph.record(moments).inputs;
  return of_normal[0] == of_moments[0] && of_normal[2] == of_moments[1] && of_normal[3] == of_moments[2] &&
         of_moments[3] == Value{normal, 3} && of_moments[4] == Value{normal, 4} &&
         uses.only_read_by({normal, 3}, moments) && uses.only_read_by({normal, 4}, moments);
}

// A region from normalise on, which starts with the moments where it can.
Region from_normalise(const Graph& graph, NodeId normal, std::vector<NodeId> behind, std::string_view rest,
                      std::optional<Value> addend) {
  Region region{"normalise" + std::string(rest), {normal}, graph.record(normal).inputs, {}};
  const Value mean = region.inputs[3];
  region.outputs.push_back({behind.empty() ? normal : behind.back(), 0});
  if (is_op(graph, mean.node, "moments") && mean.output == 0 && region.inputs[4] == Value{mean.node, 2} &&
      graph.record(mean.node).inputs[0] == region.inputs[0]) {
    region.kind = moments_first + region.kind;
    region.nodes.insert(region.nodes.begin(), mean.node);
    region.inputs.resize(moments_inputs);
    for (std::uint32_t i = 0; i < 3; ++i) region.outputs.push_back({mean.node, i});
  }
  region.nodes.insert(region.nodes.end(), behind.begin(), behind.end());
  if (addend) region.inputs.push_back(*addend);
  return region;
}

std::vector<Region> match_normalise(const Graph& graph, NodeId normal) {
  Region region = from_normalise(graph, normal, {}, "", {});
  if (region.nodes.size() == 1) return {};
  return {std::move(region)};
}

std::vector<Region> match_relu(const Graph& graph, NodeId relu, const Uses& uses) {
  const Value before = graph.record(relu).inputs[0];
  if (!uses.only_read_by(before, relu)) return {};
  if (is_op(graph, before.node, "normalise"))
    return {from_normalise(graph, before.node, {relu}, "+relu", {})};
  if (!is_op(graph, before.node, "add")) return {};
  const std::vector<Value>& operands = graph.record(before.node).inputs;
  std::vector<Region> regions;
  for (std::size_t side = 0; side < 2; ++side) {
    const Value normal = operands[side];
    const Value addend = operands[1 - side];
    if (!is_op(graph, normal.node, "normalise") || addend.node == normal.node ||
        !uses.only_read_by(normal, before.node))
      continue;
    if (graph.type(addend) != graph.type(normal)) continue;
    regions.push_back(from_normalise(graph, normal.node, {before.node, relu}, "+add+relu", addend));
  }
  return regions;
}

// The sum of both gradients of an input that ends at an addition.
struct TotalGrad {
  NodeId normal;
  NodeId moments;
  std::optional<NodeId> addition;  // before the last one, of
  std::optional<Value> addend;
};

std::optional<TotalGrad> find_total(const Graph& graph, NodeId last, const Uses& uses) {
  const std::vector<Value>& operands = graph.record(last).inputs;
  const Value moments = operands[1];
  if (!is_op(graph, moments.node, "moments_grad") || !uses.only_read_by(moments, last)) return std::nullopt;
  if (!uses.only_read_by(operands[0], last)) return std::nullopt;
  const auto is_partner = [&](Value value, NodeId reader) {
    return is_op(graph, value.node, "normalise_grad") && value.output == 0 &&
           uses.only_read_by(value, reader) && are_partners(graph, value.node, moments.node, uses);
  };
  const NodeId before = operands[0].node;
  if (is_partner(operands[0], last)) return TotalGrad{before, moments.node, {}, {}};
  if (!is_op(graph, before, "add")) return std::nullopt;
  const std::vector<Value>& added = graph.record(before).inputs;
  if (!is_partner(added[1], before) || graph.type(added[0]) != graph.type(added[1])) return std::nullopt;
  return TotalGrad{added[1].node, moments.node, before, added[0]};
}

// With the mask of the ReLU before it, whose result is an output too where somebody else, the skip path, reads it;
// or without.
std::vector<Region> match_grad(const Graph& graph, NodeId last, const Uses& uses) {
  const auto total = find_total(graph, last, uses);
  if (!total) return {};
  Region plain{total->addend ? total_grad_and_more : total_grad,
               {total->normal},
               graph.record(total->normal).inputs,
               {{last, 0}, {total->normal, 1}, {total->normal, 2}}};
  if (total->addition) plain.nodes.push_back(*total->addition);
  plain.nodes.insert(plain.nodes.end(), {total->moments, last});
  Region masked = plain;
  if (total->addend) plain.inputs.push_back(*total->addend);
  const Value grad = plain.inputs[grad_out];
  const auto mask = find_relu_mask(graph, grad, uses);
  if (!mask || total->addend == grad) return {std::move(plain)};
  masked.kind = masked_first + masked.kind;
  masked.nodes.insert(masked.nodes.begin(), {mask->compare, mask->where});
  masked.inputs[grad_out] = mask->grad;
  masked.inputs.push_back(mask->y);
  if (total->addend) masked.inputs.push_back(*total->addend);
  masked.inputs.insert(masked.inputs.end(), mask->zeros.begin(), mask->zeros.end());
  if (!uses.only_read_by(grad, total->normal)) masked.outputs.push_back(grad);
  return {std::move(masked), std::move(plain)};
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

float* at_or_null(const std::vector<Address>& addresses, std::size_t index) {
  return index < addresses.size() ? floats(addresses[index]) : nullptr;
}

std::shared_ptr<const Kernel> make_backward(const RegionQuery& query, const ChannelView& view) {
  const std::string& kind = query.region.kind;
  const BatchNormBackward norm{view, is_total_grad(kind)};
  const bool masks = kind.starts_with(masked_first);
  const bool adds = kind.ends_with(total_grad_and_more);
  const auto run = [=](const Binding& at) {
    const auto output = [&](std::size_t index) { return at_or_null(at.outputs, index); };
    norm.run({floats(at.inputs[0]), floats(at.inputs[1]), floats(at.inputs[2]), floats(at.inputs[3]),
              floats(at.inputs[grad_out]), masks ? floats(at.inputs[grad_inputs]) : nullptr,
              adds ? floats(at.inputs[grad_inputs + (masks ? 1 : 0)]) : nullptr, output(0), output(1),
              output(2), norm.total ? nullptr : output(3), norm.total ? nullptr : output(4),
              norm.total ? output(masked_output) : nullptr},
             reinterpret_cast<double*>(at.workspace));
  };
  return make_kernel(run, norm.workspace());
}

std::shared_ptr<const Kernel> make_moments(const RegionQuery& query, const ChannelView& view) {
  const BatchNormForward norm{view};
  const double epsilon = op_cast<Moments>(query.op()).options().epsilon;
  const auto run = [=](const Binding& at) {
    norm.train({floats(at.inputs[0]), nullptr, nullptr, nullptr, nullptr, floats(at.outputs[0]),
                floats(at.outputs[1]), floats(at.outputs[2])},
               epsilon, reinterpret_cast<double*>(at.workspace));
  };
  return make_kernel(run, norm.workspace());
}

std::shared_ptr<const Kernel> make_moments_grad(const ChannelView& view) {
  return make_kernel([norm = MomentsBackward{view}](const Binding& at) {
    norm.run({floats(at.inputs[0]), floats(at.inputs[1]), floats(at.inputs[2]), floats(at.inputs[3]),
              floats(at.inputs[4]), floats(at.outputs[0])});
  });
}

std::shared_ptr<const Kernel> make_forward(const RegionQuery& query, const ChannelView& view) {
  const std::string& kind = query.region.kind;
  const BatchNormForward norm{view, kind.ends_with("relu")};
  const bool adds = kind.ends_with("add+relu");
  const auto addend = [=](const Binding& at) { return adds ? floats(at.inputs.back()) : nullptr; };
  if (!kind.starts_with(moments_first))
    return make_kernel([=](const Binding& at) {
      norm.normalise_by({floats(at.inputs[0]), floats(at.inputs[1]), floats(at.inputs[2]), addend(at),
                         floats(at.outputs[0]), nullptr, nullptr, nullptr},
                        floats(at.inputs[3]), floats(at.inputs[4]));
    });
  const double epsilon = op_cast<Moments>(query.op()).options().epsilon;
  const auto run = [=](const Binding& at) {
    norm.train({floats(at.inputs[0]), floats(at.inputs[1]), floats(at.inputs[2]), addend(at),
                floats(at.outputs[0]), floats(at.outputs[1]), floats(at.outputs[2]), floats(at.outputs[3])},
               epsilon, reinterpret_cast<double*>(at.workspace));
  };
  return make_kernel(run, norm.workspace());
}

std::shared_ptr<const Kernel> make_for(const RegionQuery& query, const ChannelView& view) {
  const std::string& kind = query.region.kind;
  if (kind == "moments") return make_moments(query, view);
  if (kind == "moments_grad") return make_moments_grad(view);
  return is_forward(kind) ? make_forward(query, view) : make_backward(query, view);
}

Candidate candidate_for(const RegionQuery& query, const Layout& layout) {
  const auto layout_for = [&](Value value) {
    return is_small(query, value) ? Layout::row_major(query.type(value).shape.rank()) : layout;
  };
  Candidate candidate;
  candidate.implementation = "fast";
  for (const Value value : query.region.inputs) candidate.inputs.push_back(layout_for(value));
  for (const Value value : query.region.outputs) candidate.outputs.push_back(layout_for(value));
  const ChannelView view = *channel_view(layout, query.type(query.region.inputs[0]).shape);
  const bool writes_masked = is_total_grad(query.region.kind) && query.region.outputs.size() > masked_output;
  if (is_total_grad(query.region.kind) || query.region.kind == "normalise_grad")
    candidate.in_place = {{writes_masked ? masked_output : 0, grad_out}};
  candidate.seconds = seconds_of_traffic(query, candidate, costs::traffic_of_batch_norm);
  candidate.make = [query, view] { return make_for(query, view); };
  return candidate;
}

class BatchNormSource final : public KernelSource {
 public:
  std::vector<Region> match(const Graph& graph, NodeId last, const Uses& uses) const override {
    if (!is_float32(graph, {last, 0}) || !has_elements(graph, {last, 0})) return {};
    if (is_op(graph, last, "relu")) return match_relu(graph, last, uses);
    if (is_op(graph, last, "normalise")) return match_normalise(graph, last);
    if (is_op(graph, last, "add")) return match_grad(graph, last, uses);
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
