#include "core/scan/scan_gradient.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

bool is_given(const Node& node) { return !same_value(node, Node()); }

bool is_small_float(DType dtype) { return dtype == DType::bfloat16 || dtype == DType::float16; }

Node zeros(Graph& graph, const TensorType& type) {
  return broadcast_to(graph.constant(Tensor::scalar(0.0).cast(type.dtype)), type.shape);
}

// Returns the type in which the gradient of a value that is the same in each step is summed over the steps.
TensorType sum_type(const TensorType& type) {
  return {is_small_float(type.dtype) ? DType::float32 : type.dtype, type.shape};
}

// Joins the axes of steps and of rows: [steps, N, M] -> [steps N, M], or [steps, M, N] -> [steps N, M] if
// `transpose`.
Node joined_steps(const Node& of_steps, bool transpose) {
  const Node stacked = transpose ? permute(of_steps, {0, 2, 1}) : of_steps;
  const Shape& shape = stacked.shape();
  return reshape(stacked, {shape[0] * shape[1], shape[2]});
}

// Builds the body of a gradient in a graph of its own, and the operands of the scan that runs it.
class GradientScan {
 public:
  GradientScan(const Scan& scan, const VjpRequest& request)
      : scan_(scan),
        request_(request),
        outer_(request.inputs[0].graph()),
        inner_(outer_.mode()),
        results_(request.inputs.size()) {}

  std::vector<Node> run() {
    append_forward();
    append_gradients();
    const std::vector<Node> of_scan = gradients_.empty() ? std::vector<Node>() : apply();
    for (const auto& [input, a, b, form] : products_)
      results_[input] =
          matmul(joined_steps(stacked_values(a, of_scan), !form.transpose_a),
                 joined_steps(stacked_values(b, of_scan), form.transpose_b), {.transpose_a = true});
    return results_;
  }

 private:
  // An operand of the body of the gradient: a node of inner_, and the node of outer_ that the scan gets for it.
  struct Pair {
    Node inner;
    Node outer;
  };
  // A node of inner_ that becomes an output of the gradient's body: the gradient of an input of the scan, or an operand
  // of a product.
  struct Gradient {
    std::optional<std::size_t> input;
    Node inner;
  };
  // The gradient of an input shared by all steps, if it is the sum of the products of a and b over the steps. One product
  // after the loop computes it, which is faster than a product in each step.
  struct Product {
    std::size_t input;
    Node a;  // a node of inner_
    Node b;
    MatMulOptions form;
  };

  const Subgraph& whole() const { return scan_.whole(); }
  bool is_carry(std::size_t operand) const { return operand < scan_.form().carries; }
  bool is_floating_operand(std::size_t operand) const {
    return is_floating(whole().operand_type(operand).dtype);
  }

  Node add_operand(std::vector<Pair>& to, const TensorType& type, const Node& outer) {
    to.push_back({inner_.operand(inner_.size(), type), outer});
    return to.back().inner;
  }

  // Appends the operands and the nodes of the forward body. Here each operand of that body is either stacked
  // or the same in each step: carries are stacked, because the forward scan has kept their values before each
  // step.
  void append_forward() {
    std::vector<Value> operands;
    for (std::size_t i = 0; i < whole().operands(); ++i) {
      const TensorType& type = whole().operand_type(i);
      const Node& outer = is_carry(i) ? request_.outputs[scan_.carry_before(i)] : request_.inputs[i];
      forward_.push_back(add_operand(is_carry(i) || scan_.is_stacked(i) ? stacked_ : same_, type, outer));
      operands.push_back(forward_.back().value());
    }
    for (std::size_t i = 0; i < ordinary_outputs(); ++i) add_cotangent(i);
    for (std::size_t i = scan_.form().carries; i < whole().operands(); ++i)
      if (is_summed(i)) {
        const TensorType type = sum_type(whole().operand_type(i));
        sums_[i] = add_operand(carries_, type, zeros(outer_, type));
      }
    end_of_operands_ = inner_.size();
    values_ = append_subgraph(inner_, whole(), operands);
    end_of_forward_ = inner_.size();
  }

  std::size_t ordinary_outputs() const { return whole().outputs().size() - scan_.form().saved; }
  bool is_summed(std::size_t operand) const {
    return !is_carry(operand) && !scan_.is_stacked(operand) && is_floating_operand(operand) &&
           request_.wanted[operand];
  }

  void add_cotangent(std::size_t output) {
    const TensorType& type = whole().output_type(output);
    const Node& outer = request_.grad_outputs[output];
    if (!is_floating(type.dtype)) return;
    if (is_carry(output))
      cotangents_[output] = add_operand(carries_, type, is_given(outer) ? outer : zeros(outer_, type));
    else if (is_given(outer))
      cotangents_[output] = add_operand(stacked_, type, outer);
  }

  void append_gradients() {
    std::vector<Node> outputs;
    std::vector<Node> cotangents;
    for (const auto& [output, cotangent] : cotangents_) {
      const Value value = whole().outputs()[output];
      outputs.emplace_back(inner_, values_[value.node][value.output]);
      cotangents.push_back(cotangent);
    }
    if (outputs.empty()) return;
    std::vector<std::size_t> inputs;
    std::vector<Node> wrt;
    for (std::size_t i = 0; i < whole().operands(); ++i)
      if (is_floating_operand(i) && (is_carry(i) || request_.wanted[i])) {
        inputs.push_back(i);
        wrt.push_back(forward_[i]);
      }
    const std::vector<Node> found = vjp(outputs, cotangents, wrt);
    for (std::size_t k = 0; k < inputs.size(); ++k) add_gradient(inputs[k], found[k]);
  }

  void add_gradient(std::size_t input, Node gradient) {
    if (is_carry(input)) {
      if (!is_given(gradient)) gradient = zeros(inner_, whole().operand_type(input));
    } else if (!is_given(gradient)) {
      return;
    } else if (const auto sum = sums_.find(input); sum != sums_.end()) {
      if (add_product(input, gradient)) return;
      gradient = sum->second + in_dtype(gradient, sum->second.dtype());
    }
    gradients_.push_back({input, gradient});
  }

  // Records the gradient as a Product, if possible. Returns false if it is no product of matrices, or if an
  // operand is the same in each step. Also returns false if the forward scan recomputes its values to save
  // memory, because both operands would be kept for all steps.
  bool add_product(std::size_t input, const Node& gradient) {
    const NodeRecord& record = inner_.record(gradient.id());
    if (scan_.form().recompute || gradient.shape().rank() != 2 || record.op->name() != "matmul") return false;
    const std::vector<bool> varying = varying_nodes();
    if (!varying[record.inputs[0].node] || !varying[record.inputs[1].node]) return false;
    products_.push_back({input, Node(inner_, record.inputs[0]), Node(inner_, record.inputs[1]),
                         op_cast<MatMul>(*record.op).options()});
    for (const Node& operand : {products_.back().a, products_.back().b})
      if (!is_stacked(operand)) gradients_.push_back({std::nullopt, operand});
    return true;
  }

  // True if the values of a node of inner_ in all steps are an operand or a result of the gradient's scan.
  bool is_stacked(const Node& inner) const {
    const auto is_operand = [&](const Pair& pair) { return same_value(pair.inner, inner); };
    const auto is_result = [&](const Gradient& gradient) {
      return !is_carried(gradient.input) && same_value(gradient.inner, inner);
    };
    return std::ranges::any_of(stacked_, is_operand) || std::ranges::any_of(gradients_, is_result);
  }

  static Node in_dtype(const Node& node, DType dtype) {
    return node.dtype() == dtype ? node : cast(node, dtype);
  }

  // Appends the gradient's scan. The outputs of its body are its carries, then the gradients that it
  // collects, and then the values of the carries before each step. Returns the results of the scan.
  std::vector<Node> apply() {
    std::ranges::stable_partition(gradients_,
                                  [&](const Gradient& gradient) { return is_carried(gradient.input); });
    std::vector<Pair> carries;
    std::vector<Value> outputs;
    for (const Gradient& gradient : gradients_) {
      outputs.push_back(gradient.inner.value());
      if (is_carried(gradient.input)) carries.push_back(carry_of(*gradient.input));
    }
    for (const Pair& carry : carries) outputs.push_back(carry.inner.value());
    const std::vector<Node> results = append_scan(carries, outputs);
    for (std::size_t k = 0; k < gradients_.size(); ++k) {
      const auto input = gradients_[k].input;
      if (input && request_.wanted[*input])
        results_[*input] = in_dtype(results[k], request_.inputs[*input].dtype());
    }
    return results;
  }

  // Returns the values of an operand of a product in all steps: an operand of the gradient's scan, or one of its results.
  Node stacked_values(const Node& inner, const std::vector<Node>& results) const {
    for (const Pair& pair : stacked_)
      if (same_value(pair.inner, inner)) return pair.outer;
    for (std::size_t k = 0; k < gradients_.size(); ++k)
      if (!is_carried(gradients_[k].input) && same_value(gradients_[k].inner, inner)) return results[k];
    throw InternalError("the gradient of a scan does not collect the operand of a product");
  }

  bool is_carried(std::optional<std::size_t> input) const {
    return input && (is_carry(*input) || sums_.contains(*input));
  }

  Pair carry_of(std::size_t input) const {
    const Node& inner = is_carry(input) ? cotangents_.at(input) : sums_.at(input);
    return *std::ranges::find_if(carries_, [&](const Pair& pair) { return same_value(pair.inner, inner); });
  }

  std::vector<Node> append_scan(const std::vector<Pair>& carries, const std::vector<Value>& outputs) {
    ScanForm form{.steps = scan_.form().steps,
                  .carries = carries.size(),
                  .reverse = !scan_.form().reverse,
                  .recompute = true};
    std::vector<Pair> operands = carries;
    const auto append = [&](const std::vector<Pair>& pairs) {
      const std::vector<bool> read = operands_read(outputs);
      for (const Pair& pair : pairs)
        if (read[pair.inner.id()]) operands.push_back(pair);
    };
    append(stacked_);
    form.stacked = operands.size() - form.carries;
    append(same_);
    const std::shared_ptr<const Subgraph> whole = extract(inner_, outputs, inner_values(operands));
    if (scan_.form().saved == 0) return append_op(std::make_shared<Scan>(form, whole), operands);
    for (const Value value : values_to_keep(outputs))
      operands.push_back({Node(inner_, value), kept_output(value)});
    const std::shared_ptr<const Subgraph> cut = extract(inner_, outputs, inner_values(operands));
    return append_op(std::make_shared<Scan>(form, cut, whole), operands);
  }

  std::vector<Node> append_op(std::shared_ptr<const Op> op, const std::vector<Pair>& operands) const {
    std::vector<Node> inputs;
    for (const Pair& pair : operands) inputs.push_back(pair.outer);
    return outer_.append(std::move(op), inputs, std::source_location::current());
  }

  static std::vector<Value> inner_values(const std::vector<Pair>& pairs) {
    std::vector<Value> values;
    for (const Pair& pair : pairs) values.push_back(pair.inner.value());
    return values;
  }

  // Marks the nodes of inner_ that the outputs need. Does not look for the inputs of nodes below `first`.
  std::vector<bool> nodes_needed(const std::vector<Value>& outputs, std::size_t first) const {
    std::vector<bool> needed(inner_.size(), false);
    for (const Value output : outputs) needed[output.node] = true;
    for (auto id = static_cast<NodeId>(inner_.size()); id-- > first;)
      if (needed[id])
        for (const Value input : inner_.record(id).inputs) needed[input.node] = true;
    return needed;
  }

  std::vector<bool> operands_read(const std::vector<Value>& outputs) const {
    return nodes_needed(outputs, 0);
  }

  // Marks the nodes of inner_ whose values may differ from step to step.
  std::vector<bool> varying_nodes() const {
    std::vector<bool> varying(inner_.size(), false);
    for (const auto* pairs : {&carries_, &stacked_})
      for (const Pair& pair : *pairs) varying[pair.inner.id()] = true;
    for (auto id = static_cast<NodeId>(end_of_operands_); id < inner_.size(); ++id)
      for (const Value input : inner_.record(id).inputs)
        if (varying[input.node]) varying[id] = true;
    return varying;
  }

  // Returns the values of the forward body that its gradient reads. Leaves out values that are the same in
  // each step: these are computed again, once.
  std::vector<Value> values_to_keep(const std::vector<Value>& outputs) const {
    const std::vector<bool> needed = nodes_needed(outputs, end_of_forward_);
    const std::vector<bool> varying = varying_nodes();
    std::vector<Value> kept;
    const auto note = [&](Value value) {
      const bool is_forward = value.node >= end_of_operands_ && value.node < end_of_forward_;
      if (is_forward && varying[value.node] && std::ranges::find(kept, value) == kept.end())
        kept.push_back(value);
    };
    for (const Value output : outputs) note(output);
    for (auto id = static_cast<NodeId>(end_of_forward_); id < inner_.size(); ++id)
      if (needed[id])
        for (const Value input : inner_.record(id).inputs) note(input);
    return kept;
  }

  // Returns the stacked output in which the forward scan has kept this value of its body.
  Node kept_output(Value value) const {
    for (std::size_t output = scan_.form().carries; output < whole().outputs().size(); ++output) {
      const Value of_body = whole().outputs()[output];
      if (values_[of_body.node][of_body.output] == value) return request_.outputs[output];
    }
    throw InternalError("a scan did not save a value that its gradient reads");
  }

  const Scan& scan_;
  const VjpRequest& request_;
  Graph& outer_;
  Graph inner_;
  std::vector<Node> results_;
  std::vector<Pair> carries_;
  std::vector<Pair> stacked_;
  std::vector<Pair> same_;
  std::vector<Node> forward_;               // maps operands of the forward body to nodes of inner_
  std::map<std::size_t, Node> cotangents_;  // maps outputs of the forward body to nodes of inner_
  std::map<std::size_t, Node> sums_;        // maps operands that are the same in each step to nodes of inner_
  std::vector<std::vector<Value>> values_;  // maps nodes of the forward body to values of inner_
  std::size_t end_of_operands_ = 0;         // first node of inner_ after the operands
  std::size_t end_of_forward_ = 0;
  std::vector<Gradient> gradients_;
  std::vector<Product> products_;
};

}  // namespace

std::vector<Node> scan_gradient(const Scan& scan, const VjpRequest& request) {
  return GradientScan(scan, request).run();
}

}  // namespace plexaura
