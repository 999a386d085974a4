#include <algorithm>
#include <array>

#include "backends/cpu/onednn/bias_grad.h"
#include "backends/cpu/onednn/convolution_plan.h"
#include "backends/cpu/onednn/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/conv2d.h"
#include "core/ops/reduce.h"

namespace plexaura::onednn {

namespace {

constexpr auto input_grad_and_add = "conv2d_input_grad+add";
constexpr auto weight_and_bias_grad = "conv2d_weight_grad+bias";

constexpr std::array kinds{"conv2d", "conv2d_input_grad", "conv2d_weight_grad", weight_and_bias_grad,
                           input_grad_and_add};

bool is_pointwise(const Graph& graph, NodeId node) {
  const Conv2dOptions& options = op_cast<Conv2dInputGrad>(*graph.record(node).op).options();
  const Shape& weights = graph.type(graph.record(node).inputs[0]).shape;
  return weights[2] == 1 && weights[3] == 1 && options.stride == Size2d{} &&
         options.padding == Size2d{0, 0} && !options.padding_end && options.groups == 1;
}

bool is_bias_grad(const Graph& graph, NodeId node) {
  if (!is_op(graph, node, "sum")) return false;
  const ReduceOptions& options = op_cast<Reduce>(*graph.record(node).op).options();
  return options.axes == std::vector<std::int64_t>{0, 2, 3} && !options.keepdims;
}

bool is_weight_grad(const Graph& graph, NodeId node) { return is_op(graph, node, "conv2d_weight_grad"); }

std::vector<Region> match_add(const Graph& graph, NodeId add, const Uses& uses) {
  const std::vector<Value>& operands = graph.record(add).inputs;
  std::vector<Region> regions;
  for (std::size_t side = 0; side < 2; ++side) {
    const Value product = operands[side];
    const Value addend = operands[1 - side];
    if (!is_op(graph, product.node, "conv2d_input_grad") || !uses.only_read_by(product, add)) continue;
    if (addend == product || graph.type(addend) != graph.type(product)) continue;
    if (!is_pointwise(graph, product.node)) continue;
    std::vector<Value> inputs = graph.record(product.node).inputs;
    inputs.push_back(addend);
    regions.push_back({input_grad_and_add, {product.node, add}, std::move(inputs), {{add, 0}}});
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
    if (!is_weight_grad(graph, weights) || !is_bias_grad(graph, bias)) continue;
    if (graph.record(weights).inputs[1] != grad_out) continue;
    return {{weight_and_bias_grad, {other, last}, graph.record(weights).inputs, {{weights, 0}, {bias, 0}}}};
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

std::optional<Candidate> candidate_of(const RegionQuery& query, ConvolutionLayouts layouts) {
  const std::string& kind = query.region.kind;
  try {
    if (kind == "conv2d") return propose_conv2d(query, layouts);
    if (kind == "conv2d_input_grad") return propose_input_grad(query, layouts);
    if (kind == "conv2d_weight_grad") return propose_weight_grad(query, layouts);
    if (kind == weight_and_bias_grad) return propose_with_bias_grad(query, layouts);
    if (kind == input_grad_and_add) return propose_input_grad_and_add(query, layouts);
  } catch (const dnnl::error&) {  // the library has no implementation, so nothing is offered
  }
  return std::nullopt;
}

// True if the channels of all images and weights fill whole blocks. Then no other layout is faster.
bool is_in_whole_blocks(const RegionQuery& query, const Candidate& candidate) {
  const auto fits = [&](const Layout& layout, Value value) {
    const Shape& shape = query.type(value).shape;
    return layout.rank() != 4 || (!layout.blocks().empty() && layout.elements(shape) == shape.elements());
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
    if (is_bias_grad(graph, last) || is_weight_grad(graph, last))
      return match_weight_and_bias_grad(graph, last, uses);
    return {};
  }

  bool knows(const std::string& kind) const override { return std::ranges::find(kinds, kind) != kinds.end(); }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates;
    const DType dtype = query.type(query.region.outputs[0]).dtype;
    if (!multiplies(dtype) || !is_dense(query, dtype)) return candidates;
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
