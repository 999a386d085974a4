#include "core/ops/element_losses.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "core/ops/activations.h"
#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/loss_support.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// The loss divided by `divisor`, which is 1 or delta. The second derivative is 0 at the limits, as in PyTorch.
Node huber_of(Operand prediction, Operand target, double delta, double divisor) {
  return binary(
      "huber",
      [=](const BinaryOperands& of, const Node& grad) -> std::vector<Node> {
        const Node difference = of.a - of.b;
        const double limit = delta / divisor;
        const Node slope = grad * hard_tanh(divisor == 1 ? difference : difference / divisor, -limit, limit);
        return {slope, -slope};
      },
      prediction, target, Domain::floats, {{"delta", "divisor"}, {delta, divisor}}, Precision::wide);
}

struct Range {
  double least;
  double most;
};

// Returns the positive numbers that a dtype holds, without those that kernels may replace by 0 because they are denormal.
// Kernels of float16 compute with float32, in which its denormal numbers, from 2^-24 on, are normal.
Range positive_range(DType dtype) {
  if (dtype == DType::float64)
    return {std::numeric_limits<double>::min(), std::numeric_limits<double>::max()};
  if (dtype == DType::float16) return {0x1p-24, 65504};
  const double most = dtype == DType::bfloat16 ? 0x1.FEp127 : std::numeric_limits<float>::max();
  return {std::numeric_limits<float>::min(), most};
}

// Refuses a number of a loss that is not above 0, and one that kernels of the operands' dtype would round to 0 or
// infinity.
void require_positive(std::string_view loss, const Operand& prediction, const Operand& target,
                      const char* what, double number) {
  require_that(number > 0 && std::isfinite(number), loss, {prediction, target},
               fmt::format("{} must be a finite number above 0, not {}", what, number));
  const DType dtype = prediction.node().dtype();
  const auto [least, most] = positive_range(dtype);
  require_that(number >= least && number <= most, loss, {prediction, target},
               fmt::format("{} must be from {} to {} for {}, not {}; cast() the operands to a wider type",
                           what, least, most, name_of(dtype), number));
}

Node log_above_minus_100(const Node& p) {
  const Node is_zero = eq(p, 0);
  const Node logarithm = log(where(is_zero, 1, p));
  return where(is_zero, -100, maximum(logarithm, -100));
}

}  // namespace

Node l1(Operand prediction, Operand target, Reduction reduction) {
  const LossOf loss("l1", {prediction, target});
  return reduce_losses(abs(prediction - target), reduction);
}

Node smooth_l1(Operand prediction, Operand target, double beta, Reduction reduction) {
  const LossOf loss("smooth_l1", {prediction, target});
  require_positive("smooth_l1", prediction, target, "beta", beta);
  return reduce_losses(huber_of(prediction, target, beta, beta), reduction);
}

Node huber(Operand prediction, Operand target, double delta, Reduction reduction) {
  const LossOf loss("huber", {prediction, target});
  require_positive("huber", prediction, target, "delta", delta);
  return reduce_losses(huber_of(prediction, target, delta, 1), reduction);
}

Node binary_cross_entropy(Operand probabilities, Operand targets, Reduction reduction) {
  const LossOf loss("binary_cross_entropy", {probabilities, targets});
  const Node p = probabilities.node();
  const Node t = targets.node();
  return reduce_losses(-(t * log_above_minus_100(p) + (1 - t) * log_above_minus_100(1 - p)), reduction);
}

Node kl_div(Operand prediction, Operand target, Reduction reduction) {
  const LossOf loss("kl_div", {prediction, target});
  return reduce_losses(mul_no_nan(target, log(target) - prediction), reduction);
}

Node poisson_nll(Operand prediction, Operand target, Reduction reduction) {
  const LossOf loss("poisson_nll", {prediction, target});
  return reduce_losses(exp(prediction) - target * prediction, reduction);
}

Node gaussian_nll(Operand prediction, Operand target, Operand variance, double epsilon, Reduction reduction) {
  const LossOf loss("gaussian_nll", {prediction, target, variance});
  require_positive("gaussian_nll", prediction, target, "epsilon", epsilon);
  const Node bounded = clip(variance, epsilon, std::numeric_limits<double>::infinity());
  return reduce_losses(0.5 * (log(bounded) + square(prediction - target) / bounded), reduction);
}

Node hinge(Operand prediction, Operand target, Reduction reduction) {
  const LossOf loss("hinge", {prediction, target});
  return reduce_losses(relu(1 - target * prediction), reduction);
}

Node margin_ranking(Operand a, Operand b, Operand target, double margin, Reduction reduction) {
  const LossOf loss("margin_ranking", {a, b, target});
  require_that(std::isfinite(margin), "margin_ranking", {a, b, target},
               fmt::format("the margin must be a finite number, not {}", margin));
  return reduce_losses(relu(margin - target * (a - b)), reduction);
}

}  // namespace plexaura
