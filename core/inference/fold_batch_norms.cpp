#include "core/inference/fold_batch_norms.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "core/compile/rebuild.h"
#include "core/graph/uses.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"

namespace plexaura {

namespace {

// A product and the nodes between it and the batch norm that scales it. Each reads the one before it.
struct Chain {
  NodeId product = 0;          // the node of a conv2d, conv3d or matmul
  std::optional<NodeId> bias;  // the node that adds a bias [C] to the product
  std::optional<NodeId> view;  // the node of a reshape that keeps the axes N and C
};

class Folding {
 public:
  Folding(const Graph& source, std::span<const Value> roots) : source_(source), uses_(source, roots) {
    for (NodeId id = 0; id < source.size(); ++id) is_fixed_.push_back(is_fixed(source.record(id)));
  }

  // Returns the value in `target` that replaces the batch norm `id`, whose inputs in `target` are `inputs`.
  // Returns nothing if the node is no batch norm, or if it stays.
  std::optional<std::vector<Value>> replace(Graph& target, NodeId id,
                                            const std::vector<Value>& inputs) const {
    const auto chain = is(id, "normalise") ? chain_before(id) : std::nullopt;
    if (!chain) return std::nullopt;
    const Graph::WithOrigin origin(target, source_.record(id).origin);
    const auto node = [&](std::size_t input) { return Node(target, inputs[input]); };
    const Node factor = node(1) * node(4);
    NodeId product = inputs[0].node;
    if (chain->view) product = target.record(product).inputs[0].node;
    Node level = -1 * node(3);
    if (chain->bias) {
      const std::vector<Value>& terms = target.record(product).inputs;
      const std::size_t side = side_of_product(*chain->bias);
      level = Node(target, terms[1 - side]) + level;
      product = terms[side].node;
    }
    const NodeRecord& record = target.record(product);
    if (record.inputs.size() == 3) level = Node(target, record.inputs[2]) + level;
    Value result = scaled(target, record, factor, level * factor + node(2));
    if (chain->view) {
      const NodeRecord& view = source_.record(*chain->view);
      result = append_with_origin(target, view.op, {result}, view.origin)[0];
    }
    return std::vector{result};
  }

 private:
  bool is(NodeId id, std::string_view name) const { return source_.record(id).op->name() == name; }
  bool is_product(NodeId id) const { return is(id, "conv2d") || is(id, "conv3d") || is(id, "matmul"); }
  bool has_fixed(Value value) const { return is_fixed_[value.node]; }

  // True for a node whose values change only with the store.
  bool is_fixed(const NodeRecord& record) const {
    if (const Leaf* leaf = as_leaf(*record.op))
      return leaf->kind() == LeafKind::parameter || leaf->kind() == LeafKind::buffer ||
             leaf->kind() == LeafKind::constant;
    const OpTraits traits = record.op->traits();
    return !record.inputs.empty() && !traits.random && !traits.collective &&
           std::ranges::all_of(record.inputs, [&](Value input) { return has_fixed(input); });
  }

  std::optional<Chain> chain_before(NodeId norm) const {
    const std::vector<Value>& inputs = source_.record(norm).inputs;
    const bool wide = source_.type(inputs[0]).dtype == source_.type(inputs[1]).dtype;
    if (!wide ||
        !std::all_of(inputs.begin() + 1, inputs.end(), [&](Value input) { return has_fixed(input); }))
      return std::nullopt;
    Chain chain;
    Value value = inputs[0];
    NodeId reader = norm;
    const auto step_back = [&](std::size_t input) {
      reader = value.node;
      value = source_.record(reader).inputs[input];
    };
    if (is(value.node, "reshape") && uses_.only_read_by(value, reader) && keeps_channels(value.node)) {
      chain.view = value.node;
      step_back(0);
    }
    if (is(value.node, "add") && uses_.only_read_by(value, reader) && adds_bias(value.node)) {
      chain.bias = value.node;
      step_back(side_of_product(value.node));
    }
    chain.product = value.node;
    return uses_.only_read_by(value, reader) && has_fixed_weights(chain) ? std::optional(chain)
                                                                         : std::nullopt;
  }

  bool keeps_channels(NodeId view) const {
    const Shape& from = source_.type(source_.record(view).inputs[0]).shape;
    const Shape& to = source_.type({view, 0}).shape;
    return from.rank() >= 2 && to.rank() >= 2 && from[0] == to[0] && from[1] == to[1];
  }

  std::size_t side_of_product(NodeId add) const {
    return is_product(source_.record(add).inputs[0].node) ? 0 : 1;
  }

  // True for an addition of a fixed [C] to a product [N, C].
  bool adds_bias(NodeId add) const {
    const std::vector<Value>& terms = source_.record(add).inputs;
    const Value bias = terms[1 - side_of_product(add)];
    const Shape& sum = source_.type({add, 0}).shape;
    return sum.rank() == 2 && has_fixed(bias) && source_.type(bias).shape == Shape{sum[1]};
  }

  bool has_fixed_weights(const Chain& chain) const {
    if (!is_product(chain.product)) return false;
    const std::vector<Value>& inputs = source_.record(chain.product).inputs;
    const bool fits = !is(chain.product, "matmul") || (source_.type(inputs[0]).shape.rank() == 2 &&
                                                       source_.type(inputs[1]).shape.rank() == 2);
    return fits &&
           std::all_of(inputs.begin() + 1, inputs.end(), [&](Value input) { return has_fixed(input); });
  }

  // Returns the product with its output channels multiplied by `factor` [C], plus `bias` [C].
  static Value scaled(Graph& target, const NodeRecord& product, const Node& factor, const Node& bias) {
    const Node weights(target, product.inputs[1]);
    if (product.op->name() == "matmul") {
      const bool transposed = op_cast<MatMul>(*product.op).options().transpose_b;
      const Node columns = transposed ? reshape(factor, {factor.shape()[0], 1}) : factor;
      const Value wide = append_with_origin(
          target, product.op, {product.inputs[0], (weights * columns).value()}, product.origin)[0];
      return (Node(target, wide) + bias).value();
    }
    std::vector<std::int64_t> extents(static_cast<std::size_t>(weights.shape().rank()), 1);
    extents[0] = factor.shape()[0];
    return append_with_origin(target, product.op,
                              {product.inputs[0], (weights * reshape(factor, extents)).value(), bias.value()},
                              product.origin)[0];
  }

  const Graph& source_;
  const Uses uses_;
  std::vector<bool> is_fixed_;
};

}  // namespace

PassGraph fold_batch_norms(const Graph& graph, std::span<const Value> roots) {
  if (!graph.updates().empty()) return copy(graph, roots);
  const Folding folding(graph, roots);
  const PassGraph folded = rebuild(
      graph, roots, [](NodeId) { return true; },
      [&](Graph& target, NodeId id, const std::vector<Value>& inputs) {
        return folding.replace(target, id, inputs);
      });
  return prune(*folded.graph, folded.roots);
}

}  // namespace plexaura
