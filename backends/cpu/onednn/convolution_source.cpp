#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/onednn/bias_grad.h"
#include "backends/cpu/onednn/convolution_plan.h"
#include "backends/cpu/onednn/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/reduce.h"

namespace plexaura::onednn {

namespace {

// Suffixes of the name of an op's region that contains a second op.
constexpr std::string_view and_add = "+add";
constexpr std::string_view and_bias = "+bias";

std::string_view name_of(const Graph& graph, NodeId node) { return graph.record(node).op->name(); }

bool is_input_grad(std::string_view op) { return op == "conv2d_input_grad" || op == "conv3d_input_grad"; }
bool is_weight_grad(std::string_view op) { return op == "conv2d_weight_grad" || op == "conv3d_weight_grad"; }

template <class Options>
bool stays_in_place(const Options& options) {
  const ConvolutionWindow window = window_of(options);
  const auto is_zero = [](std::int64_t padding) { return padding == 0; };
  return window.is_dense() && window.groups == 1 && std::ranges::all_of(window.padding, is_zero) &&
         std::ranges::all_of(window.padding_end, is_zero);
}

// True if each element of the gradient depends on one pixel of grad_out.
bool is_pointwise(const Graph& graph, NodeId node) {
  const Op& op = *graph.record(node).op;
  const Shape& weights = graph.type(graph.record(node).inputs[0]).shape;
  if (weights.elements() != weights[0] * weights[1]) return false;
  return weights.rank() == 5 ? stays_in_place(op_cast<Conv3dInputGrad>(op).options())
                             : stays_in_place(op_cast<Conv2dInputGrad>(op).options());
}

// True if a node sums over all axes but that of the channels.
bool is_bias_grad(const Graph& graph, NodeId node) {
  if (!is_op(graph, node, "sum")) return false;
  const ReduceOptions& options = op_cast<Reduce>(*graph.record(node).op).options();
  const std::int64_t rank = graph.type(graph.record(node).inputs[0]).shape.rank();
  std::vector<std::int64_t> axes{0};
  for (std::int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
  return rank >= 4 && options.axes == axes && !options.keepdims;
}

std::vector<Region> match_add(const Graph& graph, NodeId add, const Uses& uses) {
  const std::vector<Value>& operands = graph.record(add).inputs;
  std::vector<Region> regions;
  for (std::size_t side = 0; side < 2; ++side) {
    const Value product = operands[side];
    const Value addend = operands[1 - side];
    const std::string_view name = name_of(graph, product.node);
    if (!is_input_grad(name) || !uses.only_read_by(product, add)) continue;
    if (addend == product || graph.type(addend) != graph.type(product)) continue;
    if (!is_pointwise(graph, product.node)) continue;
    std::vector<Value> inputs = graph.record(product.node).inputs;
    inputs.push_back(addend);
    regions.push_back(
        {std::string(name).append(and_add), {product.node, add}, std::move(inputs), {{add, 0}}});
  }
  return regions;
}

// Returns the region of the gradients of weights and bias. Both read grad_out. The library's kernel for both reads it
// only once.
std::vector<Region> match_weight_and_bias_grad(const Graph& graph, NodeId last, const Uses& uses) {
  const bool ends_with_bias = is_bias_grad(graph, last);
  const Value grad_out = graph.record(last).inputs[ends_with_bias ? 0 : 1];
  for (const NodeId other : uses.readers(grad_out)) {
    if (other >= last) continue;
    const NodeId weights = ends_with_bias ? other : last;
    const NodeId bias = ends_with_bias ? last : other;
    const std::string_view name = name_of(graph, weights);
    if (!is_weight_grad(name) || !is_bias_grad(graph, bias)) continue;
    if (graph.record(weights).inputs[1] != grad_out) continue;
    return {{std::string(name).append(and_bias),
             {other, last},
             graph.record(weights).inputs,
             {{weights, 0}, {bias, 0}}}};
  }
  return {};
}

// Proposes a kernel for the region of match_weight_and_bias_grad(). Puts the node of the weights first, since
// propose_weight_grad() reads the op of the region's first node.
std::optional<Candidate> propose_with_bias_grad(const RegionQuery& query, ConvolutionLayouts layouts) {
  Region region = query.region;
  region.nodes = {region.outputs[0].node, region.outputs[1].node};
  auto candidate = propose_weight_grad({query.graph, region, query.given, query.wanted}, layouts);
  if (!candidate) return std::nullopt;
  return with_exact_bias_grad(query, std::move(*candidate));
}

using Propose = std::optional<Candidate> (*)(const RegionQuery& query, ConvolutionLayouts layouts);

// Returns the function that proposes candidates for a kind of region. Returns null for other kinds.
Propose proposer_of(std::string_view kind) {
  if (kind == "conv2d" || kind == "conv3d") return propose_convolution;
  if (is_input_grad(kind)) return propose_input_grad;
  if (is_weight_grad(kind)) return propose_weight_grad;
  if (kind.ends_with(and_bias) && is_weight_grad(kind.substr(0, kind.size() - and_bias.size())))
    return propose_with_bias_grad;
  if (kind.ends_with(and_add) && is_input_grad(kind.substr(0, kind.size() - and_add.size())))
    return propose_input_grad_and_add;
  return nullptr;
}

std::optional<Candidate> candidate_of(const RegionQuery& query, ConvolutionLayouts layouts) {
  try {
    return proposer_of(query.region.kind)(query, layouts);
  } catch (const dnnl::error&) {  // the library has no implementation, so nothing is offered
    return std::nullopt;
  }
}

// True if the channels of all images and weights fill whole blocks. Then no other layout is faster.
bool is_in_whole_blocks(const RegionQuery& query, const Candidate& candidate) {
  const auto fits = [&](const Layout& layout, Value value) {
    const Shape& shape = query.type(value).shape;
    return layout.rank() < 4 || (!layout.blocks().empty() && layout.elements(shape) == shape.elements());
  };
  const Region& region = query.region;
  for (std::size_t i = 0; i < region.inputs.size(); ++i)
    if (!fits(candidate.inputs[i], region.inputs[i])) return false;
  return fits(candidate.outputs[0], region.outputs[0]);
}

class ConvolutionSource final : public KernelSource {
 public:
  Denormals denormals() const override { return Denormals::flushed; }

  std::vector<Region> match(const Graph& graph, NodeId last, const Uses& uses) const override {
    if (!multiplies(graph.type({last, 0}).dtype) || !has_elements(graph, {last, 0})) return {};
    if (is_op(graph, last, "add")) return match_add(graph, last, uses);
    if (is_bias_grad(graph, last) || is_weight_grad(name_of(graph, last)))
      return match_weight_and_bias_grad(graph, last, uses);
    return {};
  }

  bool knows(const std::string& kind) const override { return proposer_of(kind) != nullptr; }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates;
    const DType dtype = query.type(query.region.outputs[0]).dtype;
    if (!knows(query.region.kind) || !multiplies(dtype) || !is_dense(query, dtype)) return candidates;
    for (const ConvolutionLayouts layouts : direct_convolution_layouts) {
      auto candidate = candidate_of(query, layouts);
      if (!candidate) continue;
      candidates.push_back(std::move(*candidate));
      if (is_in_whole_blocks(query, candidates.back())) break;
    }
    if (auto winograd = candidate_of(query, ConvolutionLayouts::library_for_winograd))
      candidates.push_back(std::move(*winograd));
    return candidates;
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_convolution_source() {
  return std::make_unique<ConvolutionSource>();
}

}  // namespace plexaura::onednn
