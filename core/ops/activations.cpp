#include "core/ops/activations.h"

#include <cmath>
#include <fmt/format.h>

#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// Returns `inside` where low < x < high, 0 where x <= low, and `above` where x >= high.
Node between_or(const Node& x, double low, double high, const Node& inside, Operand above) {
  return where(le(x, low), 0, where(ge(x, high), above, inside));
}

Node elu_with_rate(Operand x, double alpha, double rate) {
  return unary("elu",
               [=](const Node& x, const Node& y, const Node& grad) {
                 return where(gt(x, 0), grad, grad * (rate * (y + alpha)));
               },
               x, Precision::wide, {{"alpha", "rate"}, {alpha, rate}});
}

}  // namespace

Node log_sigmoid(Operand x) {
  return unary(
      "log_sigmoid", [](const Node& x, const Node&, const Node& grad) { return grad * sigmoid(-x); }, x,
      Precision::wide);
}

Node softsign(Operand x) {
  return unary(
      "softsign", [](const Node& x, const Node&, const Node& grad) { return grad / square(1 + abs(x)); }, x,
      Precision::wide);
}

Node silu(Operand x) {
  return unary(
      "silu",
      [](const Node& x, const Node&, const Node& grad) {
        const Node s = sigmoid(x);
        return grad * (s * (1 + x * (1 - s)));
      },
      x);
}

Node mish(Operand x) {
  return unary(
      "mish",
      [](const Node& x, const Node&, const Node& grad) {
        const Node t = tanh(softplus(x));
        return grad * (t + x * sigmoid(x) * (1 - square(t)));
      },
      x, Precision::wide);
}

Node elu(Operand x, double alpha) {
  require_that(std::isfinite(alpha), "elu", {x}, fmt::format("alpha must be a finite number, not {}", alpha));
  return elu_with_rate(x, alpha, 1);
}

Node celu(Operand x, double alpha) {
  require_that(std::isfinite(alpha) && alpha != 0, "celu", {x},
               fmt::format("alpha must be a finite number other than 0, not {}", alpha));
  return elu_with_rate(x, alpha, 1 / alpha);
}

Node selu(Operand x) {
  constexpr double scale = 1.0507009873554805;
  constexpr double alpha = 1.6732632423543772;
  return unary(
      "selu",
      [](const Node& x, const Node& y, const Node& grad) {
        return where(gt(x, 0), scale * grad, grad * (y + scale * alpha));
      },
      x, Precision::wide);
}

Node prelu(Operand x, Operand slope) {
  const Shape& shape = x.node().shape();
  const Shape& slopes = slope.node().shape();
  const bool is_one = slopes == Shape{1};
  const bool per_channel = shape.rank() >= 2 && slopes == Shape{shape[1]};
  require_that(is_one || per_channel, "prelu", {x, slope},
               "the slope must have shape {1}, or {C} where axis 1 of the input has C channels; reshape it");
  std::vector<std::int64_t> extents(static_cast<std::size_t>(is_one ? 0 : shape.rank() - 1), 1);
  if (!is_one) extents[0] = shape[1];
  return binary(
      "prelu",
      [](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        const Node is_positive = gt(of.a, 0);
        return {where(is_positive, grad, grad * of.b), where(is_positive, 0, grad * of.a)};
      },
      x, {reshape(slope, extents), slope.where()}, Domain::floats);
}

Node hard_tanh(Operand x, double low, double high) {
  require_that(low <= high, "hard_tanh", {x},
               fmt::format("low ({}) must not be above high ({}); exchange them", low, high));
  return unary(
      "hard_tanh",
      [=](const Node& x, const Node&, const Node& grad) { return between_or(x, low, high, grad, 0); }, x,
      Precision::follows, {{"low", "high"}, {low, high}});
}

Node relu6(Operand x) {
  require_floating_operand("relu6", x);
  return hard_tanh(x, 0, 6);
}

Node hard_sigmoid(Operand x) {
  return unary(
      "hard_sigmoid",
      [](const Node& x, const Node&, const Node& grad) { return between_or(x, -3, 3, grad * (1.0 / 6), 0); },
      x);
}

Node hard_swish(Operand x) {
  return unary(
      "hard_swish",
      [](const Node& x, const Node&, const Node& grad) {
        return between_or(x, -3, 3, grad * (x * (1.0 / 3) + 0.5), grad);
      },
      x);
}

}  // namespace plexaura
