#include "core/ops/unary.h"

#include "core/ops/binary.h"
#include "core/ops/elementwise.h"

namespace plexaura {

namespace {

Node unary(std::string_view name, UnaryOp::Vjp vjp, Operand x) {
  return apply(std::make_shared<UnaryOp>(name, vjp), {x});
}

class ReluGrad final : public Op {
 public:
  std::string_view name() const override { return "relu_grad"; }
  OpTraits traits() const override { return {.elementwise = true}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 2);
    require_floating(inputs[0]);
    if (inputs[0] != inputs[1]) throw RuleError("the gradient and the output must have one type and shape");
    return {inputs[0]};
  }

  // Linear in the gradient; the mask is constant almost everywhere.
  std::vector<Node> vjp(const VjpRequest& request) const override {
    return {relu_grad(request.grad_outputs[0], request.inputs[1]), Node()};
  }
};

class StopGradient final : public Op {
 public:
  std::string_view name() const override { return "stop_gradient"; }
  OpTraits traits() const override { return {.view = true, .elementwise = true}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 1);
    return {inputs[0]};
  }

  std::vector<Node> vjp(const VjpRequest&) const override { return {Node()}; }
};

}  // namespace

Node neg(Operand x) {
  return unary(
      "neg", [](const Node&, const Node&, const Node& grad) { return -grad; }, x);
}

Node abs(Operand x) {
  return unary(
      "abs",
      [](const Node& x, const Node&, const Node& grad) {
        return where(gt(x, 0), grad, where(lt(x, 0), -grad, 0));
      },
      x);
}

Node exp(Operand x) {
  return unary(
      "exp", [](const Node&, const Node& y, const Node& grad) { return grad * y; }, x);
}

Node log(Operand x) {
  return unary(
      "log", [](const Node& x, const Node&, const Node& grad) { return grad / x; }, x);
}

Node sqrt(Operand x) {
  return unary(
      "sqrt", [](const Node&, const Node& y, const Node& grad) { return grad / (2 * y); }, x);
}

Node square(Operand x) {
  return unary(
      "square", [](const Node& x, const Node&, const Node& grad) { return grad * (2 * x); }, x);
}

Node sigmoid(Operand x) {
  return unary(
      "sigmoid", [](const Node&, const Node& y, const Node& grad) { return grad * y * (1 - y); }, x);
}

Node tanh(Operand x) {
  return unary(
      "tanh", [](const Node&, const Node& y, const Node& grad) { return grad * (1 - square(y)); }, x);
}

Node relu(Operand x) {
  return unary(
      "relu", [](const Node&, const Node& y, const Node& grad) { return relu_grad(grad, y); }, x);
}

Node softplus(Operand x) {
  return unary(
      "softplus", [](const Node& x, const Node&, const Node& grad) { return grad * sigmoid(x); }, x);
}

Node relu_grad(Operand grad_out, Operand y) { return apply(std::make_shared<ReluGrad>(), {grad_out, y}); }

std::vector<TensorType> Cast::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  return {{options().dtype, inputs[0].shape}};
}

std::vector<Node> Cast::vjp(const VjpRequest& request) const {
  const DType from = request.inputs[0].dtype();
  return {is_floating(from) ? cast(request.grad_outputs[0], from) : Node()};
}

Node cast(Operand x, DType dtype) {
  const Node node = x.node();
  return node.dtype() == dtype ? node : apply(std::make_shared<Cast>(CastOptions{dtype}), {x});
}

Node stop_gradient(Operand x) { return apply(std::make_shared<StopGradient>(), {x}); }

}  // namespace plexaura
