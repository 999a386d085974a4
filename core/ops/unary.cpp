#include "core/ops/unary.h"

#include <cmath>
#include <fmt/format.h>
#include <numbers>

#include "core/loops/loops.h"
#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/tensor/convert.h"
#include "core/tensor/dispatch.h"

namespace plexaura {

namespace {

class Clip final : public UnaryOp {
 public:
  Clip(double low, double high)
      : UnaryOp("clip",
                [=](const Node& x, const Node&, const Node& grad) {
                  return where(lt(x, low), 0, where(gt(x, high), 0, grad));
                },
                {{"low", "high"}, {low, high}}) {}

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    const std::vector<double>& bounds = options().values;
    if (!(bounds[0] <= bounds[1]))
      throw RuleError(
          fmt::format("low ({}) must not be above high ({}); exchange them", bounds[0], bounds[1]));
    return UnaryOp::infer(inputs);
  }
};

class LeakyRelu final : public UnaryOp {
 public:
  explicit LeakyRelu(double slope)
      : UnaryOp(
            "leaky_relu",
            [=](const Node& x, const Node&, const Node& grad) { return where(gt(x, 0), grad, slope * grad); },
            {{"slope"}, {slope}}) {}

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    if (const double slope = options().values[0]; !std::isfinite(slope))
      throw RuleError(fmt::format("the slope must be a finite number, not {}", slope));
    return UnaryOp::infer(inputs);
  }
};

// The derivatives of the two forms of gelu.
Node gelu_slope(const Node& x) {
  const Node density = exp(-0.5 * square(x)) * (0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
  return 0.5 * (1 + erf(x * (0.5 * std::numbers::sqrt2))) + x * density;
}

Node gelu_tanh_slope(const Node& x) {
  constexpr double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  constexpr double cubic = 0.044715;
  const Node t = tanh(scale * (x + cubic * (x * square(x))));
  return 0.5 * (1 + t) + (0.5 * scale) * x * (1 - square(t)) * (1 + (3 * cubic) * square(x));
}

class StopGradient final : public OpOf<StopGradient> {
 public:
  std::string_view name() const override { return "stop_gradient"; }
  OpTraits traits() const override {
    return {.view = true, .elementwise = true, .precision = Precision::follows};
  }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 1);
    return {inputs[0]};
  }

  std::vector<Node> vjp(const VjpRequest&) const override { return {Node()}; }
  void compute(const HostCall& call) const { copy_bytes(call.inputs[0], call.outputs[0]); }
};

// The derivative of a step function is 0 wherever it exists, so no gradient is passed on.
Node no_gradient(const Node&, const Node&, const Node&) { return {}; }

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
      "exp", [](const Node&, const Node& y, const Node& grad) { return grad * y; }, x, Precision::wide);
}

Node log(Operand x) {
  return unary(
      "log", [](const Node& x, const Node&, const Node& grad) { return grad / x; }, x, Precision::wide);
}

Node sqrt(Operand x) {
  return unary(
      "sqrt", [](const Node&, const Node& y, const Node& grad) { return grad / (2 * y); }, x,
      Precision::wide);
}

Node square(Operand x) {
  return unary(
      "square", [](const Node& x, const Node&, const Node& grad) { return mul_no_nan(grad, 2 * x); }, x,
      Precision::wide);
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
      "relu", [](const Node&, const Node& y, const Node& grad) { return where(gt(y, 0), grad, 0); }, x);
}

Node softplus(Operand x) {
  return unary(
      "softplus", [](const Node& x, const Node&, const Node& grad) { return grad * sigmoid(x); }, x,
      Precision::wide);
}

Node erf(Operand x) {
  return unary(
      "erf",
      [](const Node& x, const Node&, const Node& grad) {
        return grad * (2 * std::numbers::inv_sqrtpi * exp(-square(x)));
      },
      x, Precision::wide);
}

Node gelu(Operand x, GeluOptions options) {
  if (options.tanh)
    return unary(
        "gelu_tanh", [](const Node& x, const Node&, const Node& grad) { return grad * gelu_tanh_slope(x); },
        x, Precision::wide);
  return unary(
      "gelu", [](const Node& x, const Node&, const Node& grad) { return grad * gelu_slope(x); }, x,
      Precision::wide);
}

Node sign(Operand x) { return unary("sign", no_gradient, x); }
Node ceil(Operand x) { return unary("ceil", no_gradient, x); }
Node floor(Operand x) { return unary("floor", no_gradient, x); }
Node round(Operand x) { return unary("round", no_gradient, x); }
Node trunc(Operand x) { return unary("trunc", no_gradient, x); }

Node cube(Operand x) {
  return unary(
      "cube", [](const Node& x, const Node&, const Node& grad) { return mul_no_nan(grad, 3 * square(x)); }, x,
      Precision::wide);
}

Node rsqrt(Operand x) {
  return unary(
      "rsqrt", [](const Node&, const Node& y, const Node& grad) { return grad * (-0.5 * (y * square(y))); },
      x, Precision::wide);
}

Node reciprocal(Operand x) {
  require_floating_operand("reciprocal", x);
  return div({1, x.where()}, x);
}

Node exp2(Operand x) {
  return unary(
      "exp2", [](const Node&, const Node& y, const Node& grad) { return grad * (std::numbers::ln2 * y); }, x,
      Precision::wide);
}

Node expm1(Operand x) {
  return unary(
      "expm1", [](const Node&, const Node& y, const Node& grad) { return grad * (y + 1); }, x,
      Precision::wide);
}

Node log2(Operand x) {
  return unary(
      "log2", [](const Node& x, const Node&, const Node& grad) { return grad / (std::numbers::ln2 * x); }, x,
      Precision::wide);
}

Node log10(Operand x) {
  return unary(
      "log10", [](const Node& x, const Node&, const Node& grad) { return grad / (std::numbers::ln10 * x); },
      x, Precision::wide);
}

Node log1p(Operand x) {
  return unary(
      "log1p", [](const Node& x, const Node&, const Node& grad) { return grad / (1 + x); }, x,
      Precision::wide);
}

Node leaky_relu(Operand x, double slope) { return apply(std::make_shared<LeakyRelu>(slope), {x}); }

Node clip(Operand x, double low, double high) { return apply(std::make_shared<Clip>(low, high), {x}); }

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

void Cast::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class From>(std::type_identity<From>) {
    dispatch(call.outputs[0].dtype(), [&]<class To>(std::type_identity<To>) {
      const From* src = call.inputs[0].as<From>();
      To* dst = call.outputs[0].as<To>();
      portable::parallel_pieces(call.outputs[0].elements(), 1, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) dst[i] = convert<To>(src[i]);
      });
    });
  });
}

}  // namespace plexaura
