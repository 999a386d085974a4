#include "core/ops/losses.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// Broadcasting is refused, since it would hide a forgotten axis and change the loss.
void require_same_type(std::string_view loss, const Operand& a, const Operand& b) {
  if (a.node().type() == b.node().type() && a.node().shape().rank() > 0) return;
  throw UserError(fmt::format(
      "{}: {}({}, {}): both must have one type and shape, with the samples on axis 0; cast or reshape one of "
      "them",
      to_string(place_of_caller(a)), loss, to_string(a.node().type()), to_string(b.node().type())));
}

// The sum divided by `count`, or by 1 if `count` is 0. 16-bit elements are summed in float32, since the sum
// may leave the range of their dtype.
Node sum_over(Operand elements, std::int64_t count) {
  const auto where = elements.where();
  const DType dtype = elements.node().dtype();
  const bool is_short = size_of(dtype) == 2;
  const Operand wide = is_short ? Operand(cast(elements, DType::float32), where) : elements;
  const Node quotient = div({sum(wide), where}, std::max<std::int64_t>(count, 1));
  return is_short ? cast({quotient, where}, dtype) : quotient;
}

// True if numpy's broadcasting repeats `part` to the shape `whole`.
bool broadcasts_to(const Shape& part, const Shape& whole) {
  const std::int64_t added = whole.rank() - part.rank();
  if (added < 0) return false;
  for (std::int64_t axis = 0; axis < part.rank(); ++axis)
    if (part[axis] != 1 && part[axis] != whole[added + axis]) return false;
  return true;
}

Node join_samples(Operand elements, Reduction reduction) {
  const Shape& shape = elements.node().shape();
  if (reduction == Reduction::sum) return sum(elements);
  if (reduction == Reduction::mean) return sum_over(elements, shape[0]);
  std::vector<std::int64_t> axes(static_cast<std::size_t>(shape.rank() - 1));
  std::iota(axes.begin(), axes.end(), 1);
  return axes.empty() ? elements.node() : sum(elements, {.axes = axes});
}

}  // namespace

Node squared_error(Operand prediction, Operand target, Reduction reduction) {
  require_same_type("squared_error", prediction, target);
  const auto where = prediction.where();
  return join_samples({square({sub(prediction, target), where}), where}, reduction);
}

Node binary_cross_entropy_with_logits(Operand logits, Operand targets, Reduction reduction) {
  require_same_type("binary_cross_entropy_with_logits", logits, targets);
  return join_samples({sigmoid_cross_entropy(logits, targets), logits.where()}, reduction);
}

// softplus(-logit) (pos_weight - 1) target is added to the loss without a weight. mul_no_nan() keeps the gradient
// 0 for a sample that is left out and whose target is NaN.
Node binary_cross_entropy_with_logits(Operand logits, Operand targets, Operand pos_weight,
                                      Reduction reduction) {
  require_same_type("binary_cross_entropy_with_logits", logits, targets);
  const Shape& shape = logits.node().shape();
  const Node weight = pos_weight.node_like(logits.node());
  require_that(broadcasts_to(weight.shape(), shape), "binary_cross_entropy_with_logits", {logits, weight},
               "pos_weight must broadcast to the shape of the logits; reshape it");
  const Graph::WithOrigin guard = origin_of_caller(logits);
  const Node positive = mul_no_nan(softplus(neg(logits)), (weight - 1) * targets);
  return join_samples(sigmoid_cross_entropy(logits, targets) + positive, reduction);
}

Node mse(Operand prediction, Operand target, Reduction reduction) {
  require_same_type("mse", prediction, target);
  const auto where = prediction.where();
  const Node squares = square({sub(prediction, target), where});
  if (reduction == Reduction::none) return squares;
  if (reduction == Reduction::sum) return sum({squares, where});
  return sum_over({squares, where}, squares.shape().elements());
}

}  // namespace plexaura
