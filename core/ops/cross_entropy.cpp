#include "core/ops/cross_entropy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "core/graph/graph.h"
#include "core/loops/largest.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/binary.h"
#include "core/ops/class_losses.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/labels.h"
#include "core/ops/loss_support.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

Shape loss_shape(const Shape& logits, Reduction reduction) {
  return reduction == Reduction::none ? Shape{logits[0]} : Shape{};
}

void require_op_of_its_own(const CrossEntropyOptions& options) {
  if (options.ignore && options.reduction == Reduction::mean)
    throw RuleError("a mean that ignores a label has no op of its own; call softmax_cross_entropy()");
  if (options.label_smoothing != 0)
    throw RuleError("label smoothing has no op of its own; call softmax_cross_entropy()");
}

// The gradient of each sample's loss: [N, 1], or a scalar if it is the same for all samples.
Node weighted_cotangent(const Node& grad_out, std::int64_t samples, Reduction reduction) {
  if (reduction == Reduction::none) return reshape(grad_out, {samples, 1});
  return reduction == Reduction::mean ? divide_by_count(grad_out, std::max<std::int64_t>(samples, 1))
                                      : grad_out;
}

}  // namespace

std::string_view name_of(Reduction reduction) {
  static constexpr std::array<std::string_view, 3> names{"mean", "sum", "none"};
  return names.at(static_cast<std::size_t>(reduction));
}

Reduction FieldForm<Reduction>::from(const std::string& name) {
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none})
    if (name == name_of(reduction)) return reduction;
  throw RuleError(fmt::format("must be mean, sum or none, not '{}'", name));
}

std::vector<TensorType> SoftmaxCrossEntropy::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_op_of_its_own(options());
  require_logits_and_labels(inputs[0], inputs[1]);
  return {{inputs[0].dtype, loss_shape(inputs[0].shape, options().reduction)}, inputs[0]};
}

std::vector<Node> SoftmaxCrossEntropy::vjp(const VjpRequest& request) const {
  const Node& logits = request.inputs[0];
  const Node& labels = request.inputs[1];
  const Node& probabilities = request.outputs[1];
  return {apply(std::make_shared<SoftmaxCrossEntropyGrad>(options()),
                {logits, labels, probabilities, request.grad_outputs[0]}),
          Node()};
}

std::vector<TensorType> SoftmaxCrossEntropyGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 4);
  require_op_of_its_own(options());
  require_logits_and_labels(inputs[0], inputs[1]);
  if (inputs[2] != inputs[0]) throw RuleError("the probabilities must have the type and shape of the logits");
  if (inputs[3] != TensorType{inputs[0].dtype, loss_shape(inputs[0].shape, options().reduction)})
    throw RuleError("the gradient must have the type and shape of the loss");
  return {inputs[0]};
}

// With p = softmax(logits), w the weight of a sample and g the gradient of its loss, 0 for an ignored sample,
// this op is d = w g (p - one_hot(labels)). If u is the gradient of d, the gradient of the logits is w g p (u
// - sum(p u)), and the gradient of g is w sum(u (p - one_hot)).
std::vector<Node> SoftmaxCrossEntropyGrad::vjp(const VjpRequest& request) const {
  const Node& logits = request.inputs[0];
  const Node& grad_out = request.inputs[3];
  const Shape& shape = logits.shape();
  Node u = request.grad_outputs[0];
  Node counts;  // [N, 1]: true for samples that are not ignored; empty if all count
  if (options().ignore) counts = reshape(ne(request.inputs[1], *options().ignore), {shape[0], 1});
  if (!counts.is_empty()) u = where(counts, u, 0);
  const Node p = softmax(logits, 1);
  Node grad_logits;
  Node grad_grad_out;
  if (request.wanted[0]) {
    Node weight = weighted_cotangent(grad_out, shape[0], options().reduction);
    if (!counts.is_empty()) weight = where(counts, weight, 0);
    grad_logits = mul_no_nan(weight, p * (u - sum(p * u, {.axes = {1}, .keepdims = true})));
  }
  if (request.wanted[3]) {
    const Node excess = p - one_hot(request.inputs[1], shape[1], logits.dtype());
    grad_grad_out = reduce_losses(sum(mul_no_nan(u, excess), {.axes = {1}}), options().reduction);
  }
  return {grad_logits, Node(), Node(), grad_grad_out};
}

Node softmax_cross_entropy(Operand logits, Operand labels, CrossEntropyOptions options) {
  const bool has_targets = is_floating(labels.node().dtype()) && labels.node().type() == logits.node().type();
  if (has_targets || options.label_smoothing != 0) return composed_cross_entropy(logits, labels, {}, options);
  if (options.ignore && options.reduction == Reduction::mean) {
    const Graph::WithOrigin guard = origin_of_caller(logits);
    const Node losses = softmax_cross_entropy(logits.node(), labels.node(),
                                              {.reduction = Reduction::none, .ignore = options.ignore});
    return reduce_labelled(losses, labels.node(), options);
  }
  return apply(std::make_shared<SoftmaxCrossEntropy>(options), {logits, labels});
}

namespace {

using namespace portable;

constexpr std::int64_t cost_of_exp = 20;

// Returns the loss of one sample. Writes its probabilities, unless `probabilities` is null.
template <class T>
double sample_loss(const T* logits, std::int64_t label, T* probabilities, std::int64_t classes) {
  const double largest = largest_of(logits, classes);
  double total = 0;
  for (std::int64_t c = 0; c < classes; ++c) total += std::exp(static_cast<double>(logits[c]) - largest);
  if (probabilities != nullptr)
    for (std::int64_t c = 0; c < classes; ++c)
      probabilities[c] = T(std::exp(static_cast<double>(logits[c]) - largest) / total);
  if (label < 0 || label >= classes) return std::numeric_limits<double>::quiet_NaN();
  return std::log(total) - (static_cast<double>(logits[label]) - largest);
}

template <class T>
void forward(const HostCall& call, const CrossEntropyOptions& options) {
  const Reduction reduction = options.reduction;
  const std::int64_t samples = call.inputs[0].shape()[0];
  const std::int64_t classes = call.inputs[0].shape()[1];
  const T* logits = call.inputs[0].as<T>();
  const auto* labels = call.inputs[1].as<std::int64_t>();
  T* loss = call.outputs[0].as<T>();
  T* probabilities = call.outputs[1].as<T>();
  // Groups of samples whose losses are added up separately, for any number of threads.
  constexpr std::int64_t groups = 64;
  std::array<double, groups> totals{};
  parallel_for(groups, (samples / groups + 1) * classes * cost_of_exp, [&](std::int64_t group) {
    for (std::int64_t n = samples * group / groups; n < samples * (group + 1) / groups; ++n) {
      T* row = probabilities == nullptr ? nullptr : probabilities + n * classes;
      const double known = sample_loss(logits + n * classes, labels[n], row, classes);
      const double of_sample = options.ignore == labels[n] ? 0 : known;
      if (reduction == Reduction::none && loss != nullptr) loss[n] = T(of_sample);
      totals[static_cast<std::size_t>(group)] += of_sample;
    }
  });
  if (reduction == Reduction::none || loss == nullptr) return;
  double total = 0;
  for (const double of_group : totals) total += of_group;
  if (reduction == Reduction::mean && samples > 0) total /= static_cast<double>(samples);
  *loss = T(total);
}

template <class T>
void backward(const HostCall& call, const CrossEntropyOptions& options) {
  const Reduction reduction = options.reduction;
  const std::int64_t samples = call.outputs[0].shape()[0];
  const std::int64_t classes = call.outputs[0].shape()[1];
  const auto* labels = call.inputs[1].as<std::int64_t>();
  const T* probabilities = call.inputs[2].as<T>();
  const T* diff_loss = call.inputs[3].as<T>();
  T* diff_logits = call.outputs[0].as<T>();
  const double weight = reduction == Reduction::mean ? 1.0 / static_cast<double>(samples) : 1.0;
  parallel_for(samples, classes, [&](std::int64_t n) {
    const auto of_loss = static_cast<double>(diff_loss[reduction == Reduction::none ? n : 0]);
    if (of_loss == 0 || options.ignore == labels[n]) {
      std::fill_n(diff_logits + n * classes, classes, T(0.F));
      return;
    }
    const bool known = labels[n] >= 0 && labels[n] < classes;
    const double scale = known ? weight * of_loss : std::numeric_limits<double>::quiet_NaN();
    for (std::int64_t c = 0; c < classes; ++c) {
      const double excess =
          static_cast<double>(probabilities[n * classes + c]) - (c == labels[n] ? 1.0 : 0.0);
      diff_logits[n * classes + c] = T(scale * excess);
    }
  });
}

}  // namespace

void SoftmaxCrossEntropy::compute(const HostCall& call) const {
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { forward<T>(call, options()); });
}

void SoftmaxCrossEntropyGrad::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.outputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { backward<T>(call, options()); });
}

}  // namespace plexaura
