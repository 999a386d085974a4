#include "backends/cpu/fast/attention/attention_match.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "backends/cpu/fast/softmax/softmax_grad_regions.h"
#include "backends/regions/region_match.h"
#include "core/graph/leaf.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/softmax.h"

namespace plexaura::fast {

namespace {

const std::vector<Value>& inputs_of(const Graph& graph, Value value) {
  return graph.record(value.node).inputs;
}

bool is_matmul(const Graph& graph, Value value, MatMulOptions wanted) {
  if (!is_op(graph, value.node, "matmul")) return false;
  const MatMulOptions& options = op_cast<MatMul>(*graph.record(value.node).op).options();
  return options.transpose_a == wanted.transpose_a && options.transpose_b == wanted.transpose_b;
}

const Tensor* constant_of(const Graph& graph, Value value) {
  const Leaf* leaf = as_leaf(*graph.record(value.node).op);
  return leaf != nullptr && leaf->kind() == LeafKind::constant ? leaf->value().get() : nullptr;
}

// True if the value is a constant of one element, which is `number`.
bool is_number(const Graph& graph, Value value, double number) {
  const Tensor* constant = constant_of(graph, value);
  if (constant == nullptr || constant->shape().elements() != 1) return false;
  switch (constant->dtype()) {
    case DType::float32:
      return static_cast<double>(constant->as<float>()[0]) == number;
    case DType::float64:
      return constant->as<double>()[0] == number;
    default:
      return false;
  }
}

// True if all axes but the last two have the extents of `like`.
bool has_pairs_of(const Shape& shape, const Shape& like) {
  return shape.rank() == like.rank() && shape.rank() >= 2 &&
         std::equal(shape.extents().begin(), shape.extents().end() - 2, like.extents().begin());
}

std::int64_t extent_from_end(const Shape& shape, std::int64_t axis) { return shape[shape.rank() - axis]; }

// True if the value is a constant [..., extent, 1] or [..., 1, extent] with the numbers 0, 1, 2 and so on.
bool counts(const Graph& graph, Value value, std::int64_t axis_from_end, std::int64_t extent) {
  const Tensor* constant = constant_of(graph, value);
  if (constant == nullptr || constant->dtype() != DType::int64) return false;
  const Shape& shape = constant->shape();
  if (shape.rank() < 2 || shape.elements() != extent || extent_from_end(shape, axis_from_end) != extent)
    return false;
  const auto numbers = constant->as<std::int64_t>();
  for (std::int64_t i = 0; i < extent; ++i)
    if (numbers[static_cast<std::size_t>(i)] != i) return false;
  return true;
}

// True if the value is a constant mask [..., queries, keys] in which each query has the keys up to its own position.
bool is_causal_constant(const Graph& graph, Value value, std::int64_t queries, std::int64_t keys) {
  const Tensor* constant = constant_of(graph, value);
  if (constant == nullptr) return false;
  const Shape& shape = constant->shape();
  if (shape.rank() < 2 || shape.elements() != queries * keys || extent_from_end(shape, 2) != queries ||
      extent_from_end(shape, 1) != keys)
    return false;
  const auto* flags = constant->as<bool>().data();
  for (std::int64_t query = 0; query < queries; ++query)
    for (std::int64_t key = 0; key < keys; ++key)
      if (flags[query * keys + key] != (key <= query)) return false;
  return true;
}

// The nodes that compute the weights of an attention, and what they read.
struct Weights {
  AttentionMaskKind mask = AttentionMaskKind::none;
  Value query, key;
  std::optional<Value> masked;       // the result of the op that masks
  std::optional<Value> mask_value;   // the mask that it reads
  std::optional<NodeId> comparison;  // the node that compares the positions for a causal mask
  Value softmax;
  std::optional<Value> dropped;  // the result of the dropout
  std::optional<Value> random;
  std::vector<NodeId> nodes;

  Value result() const { return dropped.value_or(softmax); }
  bool reads_mask() const { return mask == AttentionMaskKind::bools || mask == AttentionMaskKind::added; }
};

// Follows the nodes of an attention backwards from its softmax.
class WeightsSearch {
 public:
  explicit WeightsSearch(const Graph& graph) : graph_(graph) {}

  std::optional<Weights> run(Value softmax) {
    if (!is_softmax_of_rows(softmax)) return std::nullopt;
    found_.softmax = softmax;
    found_.nodes.push_back(softmax.node);
    const Value products = follow_mask(inputs_of(graph_, softmax)[0]);
    if (!is_matmul(graph_, products, {.transpose_b = true})) return std::nullopt;
    found_.nodes.push_back(products.node);
    found_.query = inputs_of(graph_, products)[0];
    found_.key = inputs_of(graph_, products)[1];
    const Shape& scores = graph_.type(softmax).shape;
    if (graph_.type(products).shape != scores || !has_pairs_of(graph_.type(found_.query).shape, scores) ||
        !has_pairs_of(graph_.type(found_.key).shape, scores))
      return std::nullopt;
    return found_;
  }

 private:
  bool is_softmax_of_rows(Value value) const {
    if (!is_op(graph_, value.node, "softmax")) return false;
    const std::int64_t rank = graph_.type(value).shape.rank();
    const std::int64_t axis = op_cast<SoftmaxOp>(*graph_.record(value.node).op).options().axis;
    return rank >= 2 && (axis == rank - 1 || axis == -1);
  }

  // Returns the scores before the mask.
  Value follow_mask(Value scores) {
    const std::vector<Value>& inputs = inputs_of(graph_, scores);
    if (is_op(graph_, scores.node, "where") && is_number(graph_, inputs[2], -HUGE_VAL)) {
      take_mask(scores, inputs[0], AttentionMaskKind::bools);
      take_causal();
      return inputs[1];
    }
    if (is_op(graph_, scores.node, "add") && is_matmul(graph_, inputs[0], {.transpose_b = true})) {
      take_mask(scores, inputs[1], AttentionMaskKind::added);
      return inputs[0];
    }
    return scores;
  }

  void take_mask(Value masked, Value mask, AttentionMaskKind kind) {
    found_.mask = kind;
    found_.masked = masked;
    found_.mask_value = mask;
    found_.nodes.push_back(masked.node);
  }

  void take_causal() {
    const Shape& scores = graph_.type(found_.softmax).shape;
    const std::int64_t queries = extent_from_end(scores, 2), keys = extent_from_end(scores, 1);
    const Value mask = *found_.mask_value;
    if (is_op(graph_, mask.node, "ge") && counts(graph_, inputs_of(graph_, mask)[0], 2, queries) &&
        counts(graph_, inputs_of(graph_, mask)[1], 1, keys)) {
      found_.comparison = mask.node;
      found_.nodes.push_back(mask.node);
    } else if (!is_causal_constant(graph_, mask, queries, keys)) {
      return;
    }
    found_.mask = AttentionMaskKind::causal;
  }

  const Graph& graph_;
  Weights found_;
};

void take_dropout(const Graph& graph, Value dropped, Weights& weights) {
  weights.dropped = dropped;
  weights.random = inputs_of(graph, dropped)[1];
  weights.nodes.push_back(dropped.node);
}

// Returns the weights that are factors of the values.
std::optional<Weights> find_weights(const Graph& graph, Value factor, DType dtype) {
  const bool drops = is_op(graph, factor.node, "dropout") && factor.output == 0;
  if (graph.type(factor).dtype != dtype || (drops && dtype != DType::float32)) return std::nullopt;
  std::optional<Weights> weights = WeightsSearch(graph).run(drops ? inputs_of(graph, factor)[0] : factor);
  if (weights && drops) take_dropout(graph, factor, *weights);
  return weights;
}

// Adds the inputs that kernels read, then all others. Returns false if the region would read one of its own nodes.
bool append_inputs(const Graph& graph, const Weights& weights, Region& region) {
  if (weights.reads_mask()) region.inputs.push_back(*weights.mask_value);
  if (weights.random) region.inputs.push_back(*weights.random);
  std::ranges::sort(region.nodes);
  for (const NodeId node : region.nodes)
    for (const Value input : graph.record(node).inputs)
      if (!std::ranges::binary_search(region.nodes, input.node) &&
          std::ranges::find(region.inputs, input) == region.inputs.end())
        region.inputs.push_back(input);
  return std::ranges::none_of(
      region.inputs, [&](Value input) { return std::ranges::binary_search(region.nodes, input.node); });
}

std::optional<Region> forward_region(const Graph& graph, NodeId last, DType dtype) {
  if (!is_matmul(graph, {last, 0}, {})) return std::nullopt;
  const Value value = graph.record(last).inputs[1];
  const auto weights = find_weights(graph, graph.record(last).inputs[0], dtype);
  if (!weights || !has_elements(graph, {last, 0}) || !has_elements(graph, weights->result()) ||
      !has_elements(graph, weights->query) ||
      !has_pairs_of(graph.type(value).shape, graph.type(weights->softmax).shape))
    return std::nullopt;
  const AttentionRegion facts{.mask = weights->mask, .drops = weights->dropped.has_value()};
  Region region{facts.kind(), weights->nodes, {weights->query, weights->key, value}, {{last, 0}}};
  region.nodes.push_back(last);
  return append_inputs(graph, *weights, region) ? std::optional(region) : std::nullopt;
}

// Finds the gradient of an attention, from its softmax on.
class GradientSearch {
 public:
  GradientSearch(const Graph& graph, const Uses& uses) : graph_(graph), uses_(uses) {}

  std::optional<Region> run(Weights weights) {
    weights_ = std::move(weights);
    find_dropout();
    if (!find_scores_grad() || !find_weights_grad()) return std::nullopt;
    AttentionRegion facts{.backward = true, .mask = weights_.mask, .drops = weights_.dropped.has_value()};
    facts.query_grad = add_output(scores_grad_, {}, weights_.key);
    facts.key_grad = add_output(scores_grad_, {.transpose_a = true}, weights_.query);
    facts.value_grad = add_output(weights_.result(), {.transpose_a = true}, grad_);
    if (!facts.query_grad && !facts.key_grad) return std::nullopt;
    region_.kind = facts.kind();
    region_.nodes.insert(region_.nodes.end(), weights_.nodes.begin(), weights_.nodes.end());
    region_.inputs = {weights_.query, weights_.key, value_, grad_};
    return append_inputs(graph_, weights_, region_) ? std::optional(region_) : std::nullopt;
  }

 private:
  void find_dropout() {
    for (const NodeId reader : uses_.readers(weights_.softmax))
      if (!weights_.dropped && is_op(graph_, reader, "dropout")) take_dropout(graph_, {reader, 0}, weights_);
  }

  // Finds the gradient of the products of queries and keys, which is computed after that of the softmax.
  bool find_scores_grad() {
    for (const NodeId reader : uses_.readers(weights_.softmax)) {
      const std::vector<Region> found = match_softmax_grad(graph_, reader);
      if (found.empty() || found[0].inputs[0] != weights_.softmax) continue;
      region_.nodes = found[0].nodes;
      softmax_operand_grad_ = found[0].inputs[1];
      scores_grad_ = {reader, 0};
      const bool by_where =
          weights_.mask == AttentionMaskKind::bools || weights_.mask == AttentionMaskKind::causal;
      return !by_where || find_unmasked();
    }
    return false;
  }

  bool find_unmasked() {
    for (const NodeId reader : uses_.readers(scores_grad_)) {
      const std::vector<Value>& inputs = graph_.record(reader).inputs;
      if (!is_op(graph_, reader, "where") || inputs[0] != *weights_.mask_value || inputs[1] != scores_grad_ ||
          !is_number(graph_, inputs[2], 0))
        continue;
      scores_grad_ = {reader, 0};
      region_.nodes.push_back(reader);
      return true;
    }
    return false;
  }

  // Finds the product that is the gradient of the weights, before that of the softmax.
  bool find_weights_grad() {
    Value weights_grad = softmax_operand_grad_;
    if (weights_.dropped) {
      if (!is_gradient_of_dropout(weights_grad)) return false;
      region_.nodes.push_back(weights_grad.node);
      weights_grad = inputs_of(graph_, weights_grad)[0];
    }
    if (!is_matmul(graph_, weights_grad, {.transpose_b = true})) return false;
    region_.nodes.push_back(weights_grad.node);
    grad_ = inputs_of(graph_, weights_grad)[0];
    value_ = inputs_of(graph_, weights_grad)[1];
    const Shape& scores = graph_.type(weights_.softmax).shape;
    return has_pairs_of(graph_.type(grad_).shape, scores) &&
           has_pairs_of(graph_.type(value_).shape, scores) && graph_.type(weights_grad).shape == scores &&
           has_elements(graph_, grad_) && has_elements(graph_, weights_.softmax) &&
           has_elements(graph_, weights_.query);
  }

  bool is_gradient_of_dropout(Value grad) const {
    if (!is_op(graph_, grad.node, "dropout_grad")) return false;
    const NodeId dropout = weights_.dropped->node;
    return inputs_of(graph_, grad)[1] == Value{dropout, 1} &&
           op_cast<DropoutGrad>(*graph_.record(grad.node).op).options().p ==
               op_cast<DropoutOp>(*graph_.record(dropout).op).options().p;
  }

  // Adds the product of these factors to the outputs. Returns false if the graph does not have it.
  bool add_output(Value a, MatMulOptions options, Value b) {
    for (const NodeId reader : uses_.readers(a)) {
      if (!is_matmul(graph_, {reader, 0}, options) || graph_.record(reader).inputs != std::vector{a, b})
        continue;
      region_.nodes.push_back(reader);
      region_.outputs.push_back({reader, 0});
      return true;
    }
    return false;
  }

  const Graph& graph_;
  const Uses& uses_;
  Weights weights_;
  Region region_;
  Value softmax_operand_grad_, scores_grad_, grad_, value_;
};

// Returns the softmax if `factor` is the weights of an attention or the gradient of its scores.
std::optional<Value> softmax_below(const Graph& graph, Value factor) {
  if (is_op(graph, factor.node, "dropout") || is_op(graph, factor.node, "where"))
    factor = inputs_of(graph, factor)[is_op(graph, factor.node, "where") ? 1 : 0];
  if (is_op(graph, factor.node, "softmax")) return factor;
  const std::vector<Region> grad = match_softmax_grad(graph, factor.node);
  return grad.empty() ? std::nullopt : std::optional(grad[0].inputs[0]);
}

std::optional<Region> backward_region(const Graph& graph, NodeId last, const Uses& uses, DType dtype) {
  if (!is_op(graph, last, "matmul") || graph.type({last, 0}).dtype != dtype) return std::nullopt;
  const auto softmax = softmax_below(graph, graph.record(last).inputs[0]);
  if (!softmax) return std::nullopt;
  auto weights = find_weights(graph, *softmax, dtype);
  if (!weights) return std::nullopt;
  auto region = GradientSearch(graph, uses).run(std::move(*weights));
  if (!region || region->nodes.back() != last) return std::nullopt;
  const bool drops = attention_region(region->kind)->drops;
  return drops && dtype != DType::float32 ? std::nullopt : region;
}

// True if only these nodes, which are sorted, read the values of `node`.
bool is_read_only_by(const std::vector<NodeId>& readers, NodeId node, const Graph& graph, const Uses& uses) {
  for (std::uint32_t output = 0; output < graph.record(node).types.size(); ++output) {
    const Value value{node, output};
    if (uses.kept(value) || !std::ranges::all_of(uses.readers(value), [&](NodeId reader) {
          return std::ranges::binary_search(readers, reader);
        }))
      return false;
  }
  return true;
}

std::vector<NodeId> without(const std::vector<NodeId>& nodes, const std::vector<NodeId>& others) {
  std::vector<NodeId> left;
  std::ranges::set_difference(nodes, others, std::back_inserter(left));
  return left;
}

// Returns those of `nodes` that read one of `others`, which are sorted.
std::vector<NodeId> readers_among(const std::vector<NodeId>& nodes, const std::vector<NodeId>& others,
                                  const Graph& graph) {
  std::vector<NodeId> readers;
  for (const NodeId node : nodes)
    if (std::ranges::any_of(graph.record(node).inputs,
                            [&](Value input) { return std::ranges::binary_search(others, input.node); }))
      readers.push_back(node);
  return readers;
}

// Returns the nodes of the region whose values are no outputs.
std::vector<NodeId> inner_nodes(const Region& region) {
  std::vector<NodeId> outputs;
  for (const Value output : region.outputs) outputs.push_back(output.node);
  std::ranges::sort(outputs);
  return without(region.nodes, outputs);
}

}  // namespace

std::vector<Region> match_attention(const Graph& graph, NodeId last, const Uses& uses, DType dtype) {
  auto region = forward_region(graph, last, dtype);
  if (!region) region = backward_region(graph, last, uses, dtype);
  return region ? std::vector{std::move(*region)} : std::vector<Region>{};
}

std::vector<Repeat> attention_repeats(const Graph& graph, NodeId last, const Uses& uses, DType dtype,
                                      const std::function<bool(const Region&)>& pays) {
  const auto forward = forward_region(graph, last, dtype);
  if (!forward || !pays(*forward)) return {};
  Weights weights = *find_weights(graph, graph.record(last).inputs[0], dtype);
  std::ranges::sort(weights.nodes);
  const auto backward = GradientSearch(graph, uses).run(weights);
  if (backward && !pays(*backward)) return {};
  std::vector<NodeId> members = forward->nodes, hidden = inner_nodes(*forward);
  if (backward) {
    members.insert(members.end(), backward->nodes.begin(), backward->nodes.end());
    std::ranges::sort(members);
    const std::vector<NodeId> inner = inner_nodes(*backward);
    hidden.insert(hidden.end(), inner.begin(), inner.end());
  }
  const auto comparison = weights.comparison;
  for (const NodeId node : hidden)
    if (node != comparison && !is_read_only_by(members, node, graph, uses)) return {};
  std::vector<Repeat> repeats;
  if (comparison && (uses.readers({*comparison, 0}).size() > 1 || uses.kept({*comparison, 0})))
    repeats.push_back({{*comparison}, {weights.masked->node}});
  if (backward)
    repeats.push_back(
        {weights.nodes, readers_among(without(backward->nodes, weights.nodes), weights.nodes, graph)});
  return repeats;
}

}  // namespace plexaura::fast
