#include "core/ops/optimizer_steps.h"

#include <fmt/format.h>

#include "core/ops/elementwise.h"

namespace plexaura {

namespace {

// The first `count` inputs are slices of one type.
void require_slices(std::span<const TensorType> inputs, std::size_t count) {
  require_floating(inputs[0]);
  if (inputs[0].shape.rank() != 1)
    throw RuleError("an optimizer works on 1-D slices; reshape the value to one axis");
  for (const TensorType& type : inputs.first(count))
    if (type != inputs[0])
      throw RuleError("the value, its gradient and the optimizer's state must have one type and length");
}

void require_scalar(const TensorType& type, std::string_view what) {
  const bool wide = type.dtype == DType::float32 || type.dtype == DType::float64;
  if (type.shape.rank() != 0 || !wide)
    throw RuleError(fmt::format("the {} must be a scalar, float32 or float64", what));
}

// `count` inputs, and the loss scale if there is one more.
void require_inputs_and_scale(std::span<const TensorType> inputs, std::size_t count) {
  require_inputs(inputs, inputs.size() == count + 1 ? count + 1 : count);
  if (inputs.size() > count) require_scalar(inputs[count], "loss scale");
}

void require_cover(const std::vector<DecaySegment>& decay, std::int64_t count) {
  if (decay.empty()) return;
  std::int64_t end = 0;
  for (const DecaySegment& segment : decay) {
    if (segment.offset != end || segment.count < 0)
      throw RuleError(
          fmt::format("the segments of the weight decay must follow each other without gaps; one starts at "
                      "{} where {} was "
                      "expected",
                      segment.offset, end));
    end += segment.count;
  }
  if (end != count)
    throw RuleError(fmt::format("the segments of the weight decay must cover the slice; they end at {} of {}",
                                end, count));
}

void require_fraction(double value, std::string_view what) {
  if (!(value >= 0 && value < 1))
    throw RuleError(fmt::format("{} must be at least 0 and less than 1, not {}", what, value));
}

}  // namespace

DecayFields::DecayFields(const std::vector<DecaySegment>& decay) {
  for (const DecaySegment& segment : decay) {
    counts_.push_back(segment.count);
    factors_.push_back(segment.decay);
  }
}

std::vector<DecaySegment> DecayFields::segments() const {
  if (counts_.size() != factors_.size())
    throw RuleError(fmt::format("must have a factor for each of the {} decay_counts, not {}", counts_.size(),
                                factors_.size()));
  std::vector<DecaySegment> decay;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < counts_.size(); offset += counts_[i++])
    decay.push_back({.offset = offset, .count = counts_[i], .decay = factors_[i]});
  return decay;
}

std::vector<TensorType> SgdStep::infer(std::span<const TensorType> inputs) const {
  const std::size_t slices = options().momentum == 0 ? 2 : 3;
  require_inputs_and_scale(inputs, slices + 1);
  require_slices(inputs, slices);
  require_scalar(inputs[slices], "learning rate");
  require_fraction(options().momentum, "momentum");
  if (options().nesterov && options().momentum == 0)
    throw RuleError("nesterov needs momentum; set a momentum above 0");
  require_cover(options().decay, inputs[0].shape[0]);
  return std::vector<TensorType>(slices - 1, inputs[0]);
}

std::vector<TensorType> AdamStep::infer(std::span<const TensorType> inputs) const {
  require_inputs_and_scale(inputs, 6);
  require_slices(inputs, 4);
  require_scalar(inputs[4], "learning rate");
  require_scalar(inputs[5], "step");
  require_fraction(options().beta1, "beta1");
  require_fraction(options().beta2, "beta2");
  if (!(options().epsilon > 0))
    throw RuleError(fmt::format("epsilon must be above 0, not {}", options().epsilon));
  require_cover(options().decay, inputs[0].shape[0]);
  return std::vector<TensorType>(3, inputs[0]);
}

SgdResult sgd_step(Operand value, Operand grad, Node momentum, Operand learning_rate, SgdOptions options,
                   Node loss_scale) {
  std::vector<Operand> operands{value, grad};
  if (momentum) operands.emplace_back(momentum, value.where());
  operands.push_back(learning_rate);
  if (loss_scale) operands.emplace_back(loss_scale, value.where());
  const std::vector<Node> results = apply_all(std::make_shared<SgdStep>(std::move(options)), operands);
  return {results[0], results.size() > 1 ? results[1] : Node()};
}

AdamResult adam_step(Operand value, Operand grad, Operand mean, Operand square, Operand learning_rate,
                     Operand step, AdamOptions options, Node loss_scale) {
  std::vector<Operand> operands{value, grad, mean, square, learning_rate, step};
  if (loss_scale) operands.emplace_back(loss_scale, value.where());
  const std::vector<Node> results = apply_all(std::make_shared<AdamStep>(std::move(options)), operands);
  return {results[0], results[1], results[2]};
}

}  // namespace plexaura
