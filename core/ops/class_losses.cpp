#include "core/ops/class_losses.h"

#include <fmt/format.h>

#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/gather.h"
#include "core/ops/indexing.h"
#include "core/ops/labels.h"
#include "core/ops/loss_support.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// Checks logits [N, C] with labels [N], or with targets of their type and shape, and weights [C] unless empty.
void require_classes(std::string_view loss, const Operand& logits, const Operand& labels,
                     const Node& class_weights) {
  const TensorType& type = logits.node().type();
  require_floating_operand(loss, logits);
  require_that(type.shape.rank() == 2, loss, {logits, labels},
               "the logits need two axes, samples and classes; reshape or flatten() them");
  const TensorType& of_labels = labels.node().type();
  if (of_labels != type)
    require_that(
        of_labels == TensorType{DType::int64, {type.shape[0]}}, loss, {logits, labels},
        fmt::format("needs int64 labels [{}], one for each sample; cast() or reshape them", type.shape[0]));
  if (!class_weights.is_empty())
    require_that(class_weights.type() == TensorType{type.dtype, {type.shape[1]}}, loss,
                 {logits, labels, class_weights},
                 fmt::format("the weights must be {}, one for each class",
                             to_string(TensorType{type.dtype, {type.shape[1]}})));
}

// Returns the weight [N] of each label's class.
Node weights_of(const Node& labels, const Node& class_weights) {
  return sum(one_hot(labels, class_weights.shape()[0], class_weights.dtype()) * class_weights, {.axes = {1}});
}

// Returns the labels as indices: the ignored label is replaced by class 0.
Node indices_of_labels(const Node& labels, const CrossEntropyOptions& options) {
  return options.ignore ? where(eq(labels, *options.ignore), 0, labels) : labels;
}

Node zero_if_ignored(const Node& losses, const Node& labels, const CrossEntropyOptions& options) {
  return options.ignore ? where(ne(labels, *options.ignore), losses, 0) : losses;
}

// -sum(weights * targets * log_probabilities) of each sample. A product with a target 0 is 0.
Node losses_of_targets(const Node& log_probabilities, const Node& targets, const Node& class_weights) {
  const Node factors = class_weights.is_empty() ? targets : targets * class_weights;
  return -sum(mul_no_nan(factors, log_probabilities), {.axes = {1}});
}

// The losses [N] against labels. Those of unknown labels are NaN.
Node losses_of_labels(const Node& logits, const Node& labels, const Node& class_weights,
                      const CrossEntropyOptions& options) {
  Node losses =
      softmax_cross_entropy(logits, labels, {.reduction = Reduction::none, .ignore = options.ignore});
  if (!class_weights.is_empty()) losses = losses * weights_of(labels, class_weights);
  if (options.label_smoothing == 0) return losses;
  const double of_class = options.label_smoothing / static_cast<double>(logits.shape()[1]);
  const Node log_probabilities = log_softmax(logits, 1);
  const Node weighted = class_weights.is_empty() ? log_probabilities : log_probabilities * class_weights;
  const Node smooth = sum(weighted, {.axes = {1}}) * -of_class;
  return zero_if_ignored((1 - options.label_smoothing) * losses + smooth, labels, options);
}

}  // namespace

Node reduce_labelled(const Node& losses, const Node& labels, const CrossEntropyOptions& options) {
  if (!options.ignore || options.reduction != Reduction::mean)
    return reduce_losses(losses, options.reduction);
  const DType wide = size_of(losses.dtype()) == 2 ? DType::float32 : losses.dtype();
  const Node others = cast(ne(labels, *options.ignore), wide);
  const Node count = maximum(sum(others), 1);
  const Node total = sum(cast(losses, wide));
  return cast(total / count, losses.dtype());
}

Node composed_cross_entropy(const Operand& logits, const Operand& labels, const Node& class_weights,
                            const CrossEntropyOptions& options) {
  constexpr auto loss = "softmax_cross_entropy";
  require_classes(loss, logits, labels, class_weights);
  const double smoothing = options.label_smoothing;
  require_that(smoothing >= 0 && smoothing <= 1, loss, {logits, labels},
               fmt::format("label_smoothing must be from 0 to 1, not {}", smoothing));
  const Node x = logits.node();
  const Graph::WithOrigin guard = origin_of_caller(logits);
  if (!is_floating(labels.node().dtype()))
    return reduce_labelled(losses_of_labels(x, labels.node(), class_weights, options), labels.node(),
                           options);
  require_that(!options.ignore, loss, {logits, labels},
               "targets have no label to ignore; give those samples targets of 0");
  Node targets = labels.node();
  if (smoothing != 0) targets = targets * (1 - smoothing) + smoothing / static_cast<double>(x.shape()[1]);
  return reduce_losses(losses_of_targets(log_softmax(x, 1), targets, class_weights), options.reduction);
}

Node softmax_cross_entropy(Operand logits, Operand labels, Operand class_weights,
                           CrossEntropyOptions options) {
  return composed_cross_entropy(logits, labels, class_weights.node(), options);
}

namespace {

WeightedLoss sum_and_weight(const Operand& logits, const Operand& labels, const Node& class_weights,
                            CrossEntropyOptions options) {
  constexpr auto loss = "weighted_cross_entropy";
  require_classes(loss, logits, labels, class_weights);
  require_that(labels.node().dtype() == DType::int64, loss, {logits, labels},
               "needs int64 labels; pass targets to softmax_cross_entropy()");
  require_that(options.reduction == Reduction::mean, loss, {logits, labels},
               "returns a sum and its weight, so that a reduction has no effect; leave it out");
  options.reduction = Reduction::sum;
  const Node total = composed_cross_entropy(logits, labels, class_weights, options);
  const Graph::WithOrigin guard = origin_of_caller(logits);
  const Node indices = labels.node();
  const Node ones = logits.node().graph().constant(Tensor::scalar(1.0).cast(total.dtype()));
  const Node weights =
      class_weights.is_empty() ? broadcast_to(ones, indices.shape()) : weights_of(indices, class_weights);
  return {.sum = total, .weight = sum(zero_if_ignored(weights, indices, options))};
}

}  // namespace

WeightedLoss weighted_cross_entropy(Operand logits, Operand labels, CrossEntropyOptions options) {
  return sum_and_weight(logits, labels, {}, options);
}

WeightedLoss weighted_cross_entropy(Operand logits, Operand labels, Operand class_weights,
                                    CrossEntropyOptions options) {
  return sum_and_weight(logits, labels, class_weights.node(), options);
}

namespace {

Node negative_log_likelihood(const Operand& log_probabilities, const Operand& labels,
                             const Node& class_weights, const CrossEntropyOptions& options) {
  require_classes("nll", log_probabilities, labels, class_weights);
  require_that(labels.node().dtype() == DType::int64, "nll", {log_probabilities, labels},
               "needs int64 labels; pass targets to softmax_cross_entropy()");
  require_that(options.label_smoothing == 0, "nll", {log_probabilities, labels},
               "cannot smooth labels; call softmax_cross_entropy() with the logits");
  const Node x = log_probabilities.node();
  const Graph::WithOrigin guard = origin_of_caller(log_probabilities);
  const Node classes = indices_of_labels(labels.node(), options);
  const std::int64_t samples = x.shape()[0];
  Node losses = -reshape(take_along_axis(x, reshape(classes, {samples, 1}), 1), {samples});
  if (!class_weights.is_empty()) losses = losses * gather(class_weights, classes);
  return reduce_labelled(zero_if_ignored(losses, labels.node(), options), labels.node(), options);
}

}  // namespace

Node nll(Operand log_probabilities, Operand labels, CrossEntropyOptions options) {
  return negative_log_likelihood(log_probabilities, labels, {}, options);
}

Node nll(Operand log_probabilities, Operand labels, Operand class_weights, CrossEntropyOptions options) {
  return negative_log_likelihood(log_probabilities, labels, class_weights.node(), options);
}

}  // namespace plexaura
