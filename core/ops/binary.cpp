#include "core/ops/binary.h"

#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

using namespace portable;

// y = f(a, b) as bool.
class CompareOp final : public FunctionOp {
 public:
  explicit CompareOp(std::string_view name) : OpWith({}), name_(name) {}

  std::string_view name() const override { return name_; }
  HostKernel reference() const override { return binary_kernel(name_); }
  OpTraits traits() const override { return {.elementwise = true, .precision = Precision::follows}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 2);
    return {{DType::boolean, broadcast_types(inputs[0], inputs[1]).shape}};
  }

  std::vector<Node> vjp(const VjpRequest&) const override { return {Node(), Node()}; }

 private:
  std::string_view name_;
};

class Where final : public OpOf<Where> {
 public:
  std::string_view name() const override { return "where"; }
  OpTraits traits() const override { return {.elementwise = true, .precision = Precision::follows}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 3);
    if (inputs[0].dtype != DType::boolean)
      throw RuleError("the condition must be bool; make it with a comparison");
    const TensorType chosen = broadcast_types(inputs[1], inputs[2]);
    return {{chosen.dtype, broadcast(inputs[0].shape, chosen.shape)}};
  }

  std::vector<Node> vjp(const VjpRequest& request) const override {
    const Node& condition = request.inputs[0];
    const Node& grad = request.grad_outputs[0];
    return {Node(), plexaura::where(condition, grad, 0), plexaura::where(condition, 0, grad)};
  }

  void compute(const HostCall& call) const;
};

// The gradient of maximum and minimum for one operand. Equal operands get half of it each.
Node share_of_chosen(const Node& chosen, const BinaryOperands& of, const Node& grad) {
  return where(eq(of.a, of.b), 0.5 * grad, where(chosen, grad, 0));
}

Node compare(std::string_view name, Operand a, Operand b) {
  return apply(std::make_shared<CompareOp>(name), {a, b});
}

}  // namespace

Node add(Operand a, Operand b) {
  return binary(
      "add",
      [](const BinaryOperands&, const Node& grad) -> std::vector<Node> {
        return {grad, grad};
      },
      a, b);
}

Node sub(Operand a, Operand b) {
  return binary(
      "sub",
      [](const BinaryOperands&, const Node& grad) -> std::vector<Node> {
        return {grad, -grad};
      },
      a, b);
}

Node mul(Operand a, Operand b) {
  return binary(
      "mul",
      [](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        return {grad * of.b, grad * of.a};
      },
      a, b);
}

Node div(Operand a, Operand b) {
  return binary(
      "div",
      [](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        const Node over_b = grad / of.b;
        return {over_b, -(over_b * of.y)};
      },
      a, b);
}

Node maximum(Operand a, Operand b) {
  return binary(
      "maximum",
      [](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        return {share_of_chosen(gt(of.a, of.b), of, grad), share_of_chosen(lt(of.a, of.b), of, grad)};
      },
      a, b);
}

Node minimum(Operand a, Operand b) {
  return binary(
      "minimum",
      [](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        return {share_of_chosen(lt(of.a, of.b), of, grad), share_of_chosen(gt(of.a, of.b), of, grad)};
      },
      a, b);
}

Node weighted_sum(Operand a, double weight_a, Operand b, double weight_b) {
  return binary("weighted_sum",
                [=](const BinaryOperands&, const Node& grad) -> std::vector<Node> {
                  return {weight_a * grad, weight_b * grad};
                },
                a, b, Domain::floats, {{"weight_a", "weight_b"}, {weight_a, weight_b}});
}

Node pow(Operand a, Operand b) {
  return binary(
      "pow",
      [](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        const Node base = where(le(of.b, 0), where(eq(of.a, 0), 1, of.a), of.a);
        return {grad * mul_no_nan(of.b, pow_log(of.a, of.b - 1, 0)), grad * pow_log(base, of.b, 1)};
      },
      a, b, Domain::floats, {}, Precision::wide);
}

Node pow_log(Operand a, Operand b, int order) {
  return binary(
      "pow_log",
      [order](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        Node slope = mul_no_nan(of.b, pow_log(of.a, of.b - 1, order));
        if (order > 0) slope = slope + order * pow_log(of.a, of.b - 1, order - 1);
        return {mul_no_nan(grad, slope), mul_no_nan(grad, pow_log(of.a, of.b, order + 1))};
      },
      a, b, Domain::floats, {{"order"}, {static_cast<double>(order)}}, Precision::wide);
}

Node mul_no_nan(Operand a, Operand b) {
  return binary(
      "mul_no_nan",
      [](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        return {mul_no_nan(grad, of.b), mul_no_nan(of.a, grad)};
      },
      a, b, Domain::floats);
}

Node sigmoid_cross_entropy(Operand logits, Operand targets) {
  return binary(
      "sigmoid_cross_entropy",
      [](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        return {mul_no_nan(grad, sigmoid(of.a) - of.b), -mul_no_nan(grad, of.a)};
      },
      logits, targets, Domain::floats, {}, Precision::wide);
}

Node floor_div(Operand a, Operand b) {
  return binary(
      "floor_div",
      [](const BinaryOperands&, const Node&) -> std::vector<Node> {
        return {Node(), Node()};
      },
      a, b);
}

Node mod(Operand a, Operand b) {
  return binary(
      "mod",
      [](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        return {grad, -(grad * floor_div(of.a, of.b))};
      },
      a, b);
}

Node eq(Operand a, Operand b) { return compare("eq", a, b); }
Node ne(Operand a, Operand b) { return compare("ne", a, b); }
Node lt(Operand a, Operand b) { return compare("lt", a, b); }
Node le(Operand a, Operand b) { return compare("le", a, b); }
Node gt(Operand a, Operand b) { return compare("gt", a, b); }
Node ge(Operand a, Operand b) { return compare("ge", a, b); }

Node where(Operand condition, Operand a, Operand b) {
  const Node flags = condition.node();
  require_that(
      !a.is_number() || !b.is_number(), "where", {condition},
      "both choices are numbers, and a number takes its type from a node; make one of them a node, or "
      "compute with cast(condition, DType::float32), which is 1 and 0");
  const Node like = a.is_number() ? b.node() : a.node();
  return apply(std::make_shared<Where>(),
               {Operand(flags, condition.where()), a.node_like(like), b.node_like(like)});
}

void Where::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const auto walk =
      broadcast_walk(result.shape(), call.inputs[0].shape(), call.inputs[1].shape(), call.inputs[2].shape());
  const auto steps = walk.run_strides();
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const bool* condition = call.inputs[0].as<bool>();
    const T* a = call.inputs[1].as<T>();
    const T* b = call.inputs[2].as<T>();
    T* dst = result.as<T>();
    parallel_pieces(walk.elements(), 1, [&](std::int64_t begin, std::int64_t end) {
      walk.runs(begin, end, [&](std::int64_t first, const auto& offsets, std::int64_t length) {
        for (std::int64_t i = 0; i < length; ++i)
          dst[first + i] = condition[offsets[0] + i * steps[0]] ? a[offsets[1] + i * steps[1]]
                                                                : b[offsets[2] + i * steps[2]];
      });
    });
  });
}

}  // namespace plexaura
