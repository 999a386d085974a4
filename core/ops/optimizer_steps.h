#pragma once

#include <type_traits>
#include <vector>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// The steps of the optimizers, as ops on arena slices. All slices are 1-D, of the same dtype and length, and
// a step is the same function of each element. Zero padding remains zero. The ops have no gradient.
// learning_rate, step and loss_scale are scalars, float32 or float64. In the formulas below, `grad` is the
// gradient divided by loss_scale, if there is one; `decay` is that of the element's segment, and
// `learning_rate` is multiplied by the segment's rate. A loss_scale of 0 says that the gradients are not usable:
// values and state then keep all their bits.

// Elements [offset, offset + count) of the slice have this weight decay, and this multiple of the learning
// rate.
struct StepSegment {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  double decay = 0;
  double rate = 1;
};

// The segments of a slice as fields: their counts, decays and rates. The segments follow each other without
// gaps, so the counts determine their offsets. If all rates are 1, they are not written.
class StepSegmentFields {
 public:
  PLEXAURA_API explicit StepSegmentFields(const std::vector<StepSegment>& segments);
  // Throws RuleError unless there are as many counts as decays and, if any, as rates.
  PLEXAURA_API std::vector<StepSegment> segments() const;

  static void visit(auto& segments, auto& visitor) {
    StepSegmentFields of(segments);
    visitor("decay_counts", of.counts_);
    visitor("decay", of.decays_);
    visitor("rates", of.rates_, {});
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(segments)>>) segments = of.segments();
  }

 private:
  std::vector<std::int64_t> counts_;
  std::vector<double> decays_;
  std::vector<double> rates_;  // empty: all rates are 1
};

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;  // requires momentum
  // The segments in order, without gaps, covering the slice. Empty: no decay, and the same learning rate for
  // all elements.
  std::vector<StepSegment> segments = {};

  static void fields(auto& self, auto& visitor) {
    visitor("momentum", self.momentum);
    visitor("nesterov", self.nesterov);
    StepSegmentFields::visit(self.segments, visitor);
  }
};

struct SgdResult {
  Node value;
  Node momentum;  // empty without momentum
};

// Stochastic gradient descent as defined by PyTorch (torch.optim.SGD, dampening 0): g = grad + decay * value;
// m' = momentum * m + g; value' = value - learning_rate * (nesterov ? g + momentum * m' : m'). The initial
// momentum state is zero. If `momentum` is 0, pass an empty Node.
PLEXAURA_API SgdResult sgd_step(Operand value, Operand grad, Node momentum, Operand learning_rate,
                                SgdOptions options = {}, Node loss_scale = {});

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool decoupled = false;  // AdamW: decay changes the value directly, not through the gradient
  std::vector<StepSegment> segments = {};  // segments of the slice, as in SgdOptions

  static void fields(auto& self, auto& visitor) {
    visitor("beta1", self.beta1);
    visitor("beta2", self.beta2);
    visitor("epsilon", self.epsilon);
    visitor("decoupled", self.decoupled);
    StepSegmentFields::visit(self.segments, visitor);
  }
};

struct AdamResult {
  Node value;
  Node mean;
  Node square;
};

// Adam as defined by PyTorch (torch.optim.Adam and AdamW; Kingma and Ba, arXiv:1412.6980, and Loshchilov and
// Hutter, arXiv:1711.05101): g = grad + decay * value, or for AdamW value *= 1 - learning_rate * decay; mean'
// = beta1 * mean + (1 - beta1) * g; square' = beta2 * square + (1 - beta2) * g^2; value' = value -
// learning_rate / (1 - beta1^step) * mean' / (sqrt(square' / (1 - beta2^step)) + epsilon). The initial state
// is zero. The first step is 1.
PLEXAURA_API AdamResult adam_step(Operand value, Operand grad, Operand mean, Operand square,
                                  Operand learning_rate, Operand step, AdamOptions options = {},
                                  Node loss_scale = {});

struct RmsOptions {
  double kept = 0.99;   // factor of the old mean square
  double added = 0.01;  // factor of the new square
  double initial = 0;   // added to the mean square before the root is taken
  double epsilon = 1e-8;
  double momentum = 0;
  bool centered = false;                   // subtracts the square of the gradient's mean from the mean square
  std::vector<StepSegment> segments = {};  // segments of the slice, as in SgdOptions

  static void fields(auto& self, auto& visitor) {
    visitor("kept", self.kept);
    visitor("added", self.added);
    visitor("initial", self.initial);
    visitor("epsilon", self.epsilon);
    visitor("momentum", self.momentum);
    visitor("centered", self.centered);
    StepSegmentFields::visit(self.segments, visitor);
  }
};

// The optimizer state that rms_step() reads.
struct RmsState {
  Node square;
  Node mean = {};      // empty unless centered
  Node momentum = {};  // empty without momentum
};

struct RmsResult {
  Node value;
  RmsState state;
};

// A step by the gradient divided by the root of its mean square: g = grad + decay * value; square' = kept * square +
// added * g^2; if centered, mean' = kept * mean + added * g; slope = g / (sqrt(initial + square' - mean'^2) + epsilon);
// m' = momentum * m + slope; value' = value - learning_rate * m'. The initial state is zero. With added = 1 - kept
// this is RMSProp, and with kept = added = 1 Adagrad (Duchi, Hazan and Singer 2011), both as defined by PyTorch
// (torch.optim.RMSprop and Adagrad), except that a difference square' - mean'^2 below 0, which rounding may cause, counts
// as 0: PyTorch's root of it is NaN.
PLEXAURA_API RmsResult rms_step(Operand value, Operand grad, const RmsState& state, Operand learning_rate,
                                RmsOptions options = {}, Node loss_scale = {});

// Inputs: value, grad, optionally the momentum, learning_rate, optionally the loss_scale. Outputs: the new
// value and momentum.
class PLEXAURA_API SgdStep final : public OpOf<SgdStep, SgdOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "sgd_step"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.elementwise = true}; }
};

// Inputs: value, grad, mean, square, learning_rate, step, optionally the loss_scale. Outputs: the new value,
// mean and square.
class PLEXAURA_API AdamStep final : public OpOf<AdamStep, AdamOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "adam_step"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.elementwise = true}; }
};

// Inputs: value, grad, square, if centered the mean, with momentum the momentum, learning_rate, optionally the
// loss_scale. Outputs: the new value, square, mean and momentum, as far as they are inputs.
class PLEXAURA_API RmsStep final : public OpOf<RmsStep, RmsOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "rms_step"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.elementwise = true}; }
  // Returns the number of inputs that are slices of arenas: 3 to 5.
  std::size_t slices() const { return 3 + (options().centered ? 1 : 0) + (options().momentum != 0 ? 1 : 0); }
};

}  // namespace plexaura
