#pragma once

#include <optional>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// The reduction of the losses of samples to one number. `none` keeps them all, one for each sample. The mean
// of zero samples is 0, so that a rank without samples adds nothing.
enum class Reduction : std::uint8_t { mean, sum, none };
PLEXAURA_API std::string_view name_of(Reduction reduction);

template <>
struct PLEXAURA_API FieldForm<Reduction> {
  static std::string of(Reduction reduction) { return std::string(name_of(reduction)); }
  static Reduction from(const std::string& name);
};

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  // Samples with this label have the loss 0 and the gradient 0, and do not count in a mean. The label need
  // not be a class.
  std::optional<std::int64_t> ignore = {};
  // From 0 to 1: the target of a sample becomes (1 - label_smoothing) target + label_smoothing / C.
  double label_smoothing = 0;

  static void fields(auto& self, auto& visitor) {
    visitor("reduction", self.reduction);
    visitor("ignore", self.ignore);
    visitor("label_smoothing", self.label_smoothing, 0.0);
  }
};

// The cross-entropy of softmax(logits) against class numbers: -log softmax(logits)[n, labels[n]].
//   logits [N, C], floating; labels int64 [N], each from 0 to C - 1, or the label to ignore.
// The loss is a scalar, or [N] for Reduction::none, of the logits' dtype. Any other label makes the loss and
// the gradient of its sample NaN, so readers of data must check labels. If the gradient of a sample's loss is 0, as
// after where(valid, losses, 0), that of its logits is 0, whatever its label and, without label_smoothing, its logits.
// A mean is over the samples of one rank and micro-batch that are not ignored. A training step weights these
// means by the numbers of all samples, ignored ones included.
//
// Instead of labels there may be targets: a probability for each class, of the type and shape of the logits. The
// loss of a sample is then -sum(targets * log softmax(logits)), in which a target 0 gives 0. No label can be
// ignored.
PLEXAURA_API Node softmax_cross_entropy(Operand logits, Operand labels, CrossEntropyOptions options = {});

// The loss with weights for the classes, [C] of the logits' dtype: each term of a sample's loss is multiplied by the
// weight of its class. A mean is divided by the number of samples, not by the sum of their weights: for that see
// weighted_cross_entropy().
PLEXAURA_API Node softmax_cross_entropy(Operand logits, Operand labels, Operand class_weights,
                                        CrossEntropyOptions options = {});

// A sum of losses and the number that divides it, both scalars, for LossOutputs::loss and LossOutputs::weight.
struct WeightedLoss {
  Node sum;
  Node weight;
};

// The cross-entropy against labels [N] as a sum, and the weight that divides it: the number of labels that are not
// ignored or, with class_weights [C], the sum of the weights of these labels' classes. If a training step divides by
// the weight of all its samples, its loss is that of torch.nn.CrossEntropyLoss(weight, ignore_index,
// label_smoothing=label_smoothing) for the whole batch. Throws UserError for a `reduction` other than the default,
// which would have no effect, and for targets instead of labels.
PLEXAURA_API WeightedLoss weighted_cross_entropy(Operand logits, Operand labels,
                                                 CrossEntropyOptions options = {});
PLEXAURA_API WeightedLoss weighted_cross_entropy(Operand logits, Operand labels, Operand class_weights,
                                                 CrossEntropyOptions options = {});

// -log_probabilities[n, labels[n]], for log_probabilities [N, C], floating, as of log_softmax(), and labels as for
// softmax_cross_entropy(). A label that is neither a class nor ignored ends the run with an error, as in gather().
// Refuses label smoothing. With class_weights [C] each loss is multiplied by the weight of its class.
PLEXAURA_API Node nll(Operand log_probabilities, Operand labels, CrossEntropyOptions options = {});
PLEXAURA_API Node nll(Operand log_probabilities, Operand labels, Operand class_weights,
                      CrossEntropyOptions options = {});

// Outputs: loss; saved: softmax(logits) [N, C]. A mean that ignores a label, targets, class weights and label
// smoothing are composed of other ops instead.
class PLEXAURA_API SoftmaxCrossEntropy final : public OpOf<SoftmaxCrossEntropy, CrossEntropyOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "softmax_cross_entropy"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.saved_outputs = 1}; }
};

// The gradient with respect to the logits. Inputs: logits, labels, the saved probabilities, grad_out. No
// kernel reads the logits. They are an input because the probabilities are a function of them, which second
// derivatives need.
class PLEXAURA_API SoftmaxCrossEntropyGrad final : public OpOf<SoftmaxCrossEntropyGrad, CrossEntropyOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "softmax_cross_entropy_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.unread_inputs = {0}}; }
};

}  // namespace plexaura
