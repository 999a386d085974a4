#include "core/ops/optimizer_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"

namespace plexaura {

namespace {

// Checks that the first `count` inputs are slices of the same type.
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

// Checks that there are `count` inputs, or one more, the loss scale.
void require_inputs_and_scale(std::span<const TensorType> inputs, std::size_t count) {
  require_inputs(inputs, inputs.size() == count + 1 ? count + 1 : count);
  if (inputs.size() > count) require_scalar(inputs[count], "loss scale");
}

void require_cover(const std::vector<StepSegment>& segments, std::int64_t count) {
  if (segments.empty()) return;
  std::int64_t end = 0;
  for (const StepSegment& segment : segments) {
    if (segment.offset != end || segment.count < 0)
      throw RuleError(fmt::format(
          "the segments must follow each other without gaps; one starts at {} where {} was expected",
          segment.offset, end));
    if (!(segment.rate > 0))
      throw RuleError(fmt::format(
          "a segment's multiple of the learning rate must be above 0, not {}; leave out what is not to move",
          segment.rate));
    end += segment.count;
  }
  if (end != count)
    throw RuleError(fmt::format("the segments must cover the slice; they end at {} of {}", end, count));
}

void require_fraction(double value, std::string_view what) {
  if (!(value >= 0 && value < 1))
    throw RuleError(fmt::format("{} must be at least 0 and less than 1, not {}", what, value));
}

}  // namespace

StepSegmentFields::StepSegmentFields(const std::vector<StepSegment>& segments) {
  for (const StepSegment& segment : segments) {
    counts_.push_back(segment.count);
    decays_.push_back(segment.decay);
    rates_.push_back(segment.rate);
  }
  if (std::ranges::all_of(rates_, [](double rate) { return rate == 1; })) rates_.clear();
}

std::vector<StepSegment> StepSegmentFields::segments() const {
  if (counts_.size() != decays_.size())
    throw RuleError(fmt::format("must have a factor for each of the {} decay_counts, not {}", counts_.size(),
                                decays_.size()));
  if (!rates_.empty() && counts_.size() != rates_.size())
    throw RuleError(fmt::format("must have a rate for each of the {} decay_counts, not {}", counts_.size(),
                                rates_.size()));
  std::vector<StepSegment> segments;
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < counts_.size(); offset += counts_[i++])
    segments.push_back({offset, counts_[i], decays_[i], rates_.empty() ? 1 : rates_[i]});
  return segments;
}

std::vector<TensorType> SgdStep::infer(std::span<const TensorType> inputs) const {
  const std::size_t slices = options().momentum == 0 ? 2 : 3;
  require_inputs_and_scale(inputs, slices + 1);
  require_slices(inputs, slices);
  require_scalar(inputs[slices], "learning rate");
  require_fraction(options().momentum, "momentum");
  if (options().nesterov && options().momentum == 0)
    throw RuleError("nesterov needs momentum; set a momentum above 0");
  require_cover(options().segments, inputs[0].shape[0]);
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
  require_cover(options().segments, inputs[0].shape[0]);
  return std::vector<TensorType>(3, inputs[0]);
}

std::vector<TensorType> RmsStep::infer(std::span<const TensorType> inputs) const {
  require_inputs_and_scale(inputs, slices() + 1);
  require_slices(inputs, slices());
  require_scalar(inputs[slices()], "learning rate");
  require_fraction(options().momentum, "momentum");
  if (!(options().kept >= 0 && options().kept <= 1))
    throw RuleError(fmt::format("kept must be from 0 to 1, not {}", options().kept));
  if (!(options().added > 0)) throw RuleError(fmt::format("added must be above 0, not {}", options().added));
  if (!(options().initial >= 0))
    throw RuleError(fmt::format("initial must be at least 0, not {}", options().initial));
  if (!(options().epsilon > 0))
    throw RuleError(fmt::format("epsilon must be above 0, not {}", options().epsilon));
  require_cover(options().segments, inputs[0].shape[0]);
  return std::vector<TensorType>(slices() - 1, inputs[0]);
}

SgdResult sgd_step(Operand value, Operand grad, Node momentum, Operand learning_rate, SgdOptions options,
                   Node loss_scale) {
  std::vector<Operand> operands{value, grad};
  if (!momentum.is_empty()) operands.emplace_back(momentum, value.where());
  operands.push_back(learning_rate);
  if (!loss_scale.is_empty()) operands.emplace_back(loss_scale, value.where());
  const std::vector<Node> results = apply_all(std::make_shared<SgdStep>(std::move(options)), operands);
  return {results[0], results.size() > 1 ? results[1] : Node()};
}

AdamResult adam_step(Operand value, Operand grad, Operand mean, Operand square, Operand learning_rate,
                     Operand step, AdamOptions options, Node loss_scale) {
  std::vector<Operand> operands{value, grad, mean, square, learning_rate, step};
  if (!loss_scale.is_empty()) operands.emplace_back(loss_scale, value.where());
  const std::vector<Node> results = apply_all(std::make_shared<AdamStep>(std::move(options)), operands);
  return {results[0], results[1], results[2]};
}

RmsResult rms_step(Operand value, Operand grad, const RmsState& state, Operand learning_rate,
                   RmsOptions options, Node loss_scale) {
  std::vector<Operand> operands{value, grad};
  for (const Node& slice : {state.square, state.mean, state.momentum})
    if (!slice.is_empty()) operands.emplace_back(slice, value.where());
  operands.push_back(learning_rate);
  if (!loss_scale.is_empty()) operands.emplace_back(loss_scale, value.where());
  const std::vector<Node> results = apply_all(std::make_shared<RmsStep>(std::move(options)), operands);
  const bool is_centered = !state.mean.is_empty();
  return {results[0],
          {.square = results[1],
           .mean = is_centered ? results[2] : Node(),
           .momentum = state.momentum.is_empty() ? Node() : results[is_centered ? 3 : 2]}};
}

namespace {

using namespace portable;

double read_scalar(const HostView& view) {
  return view.dtype() == DType::float64 ? *view.as<double>() : static_cast<double>(*view.as<float>());
}

// Returns the factor of the gradient: 1 / loss scale if there is an input `at`, which then is the loss scale;
// otherwise 1.
double gradient_factor(const HostCall& call, std::size_t at) {
  return call.inputs.size() > at ? 1 / read_scalar(call.inputs[at]) : 1;
}

// True if the loss scale, input `at`, says that this step is skipped. Then also copies the old values and
// state to the outputs. An output may share the memory of any input.
template <class T>
bool stays(const HostCall& call, std::size_t at) {
  if (call.inputs.size() <= at || read_scalar(call.inputs[at]) != 0) return false;
  std::array<T, 5> kept{};
  const std::size_t slices = call.outputs.size();
  for (std::int64_t i = 0; i < call.inputs[0].type->shape.elements(); ++i) {
    for (std::size_t k = 0; k < slices; ++k) kept.at(k) = call.inputs[k == 0 ? 0 : k + 1].as<T>()[i];
    for (std::size_t k = 0; k < slices; ++k)
      if (call.outputs[k].data != nullptr) call.outputs[k].as<T>()[i] = kept.at(k);
  }
  return true;
}

// Calls body(begin, end, segment) for pieces of the slice that each lie in one segment.
template <class Body>
void for_each_segment(const std::vector<StepSegment>& segments, std::int64_t count, std::int64_t cost,
                      const Body& body) {
  const auto run = [&](const StepSegment& segment) {
    parallel_pieces(segment.count, cost, [&](std::int64_t begin, std::int64_t end) {
      body(segment.offset + begin, segment.offset + end, segment);
    });
  };
  if (segments.empty()) run({.count = count});
  for (const StepSegment& segment : segments) run(segment);
}

template <class T>
void store(const HostView& view, std::int64_t i, Compute<T> value) {
  if (view.data != nullptr) view.as<T>()[i] = T(value);
}

template <class T>
void sgd(const HostCall& call, const SgdOptions& options) {
  using C = Compute<T>;
  const bool has_momentum = options.momentum != 0;
  const T* value = call.inputs[0].as<T>();
  const T* grad = call.inputs[1].as<T>();
  const T* state = has_momentum ? call.inputs[2].as<T>() : nullptr;
  const std::size_t slices = has_momentum ? 3 : 2;
  if (stays<T>(call, slices + 1)) return;
  const double learning_rate = read_scalar(call.inputs[slices]);
  const C factor = static_cast<C>(gradient_factor(call, slices + 1));
  const C momentum = static_cast<C>(options.momentum);
  for_each_segment(options.segments, call.inputs[0].elements(), 4,
                   [&](std::int64_t begin, std::int64_t end, const StepSegment& segment) {
                     const C rate = static_cast<C>(learning_rate * segment.rate);
                     const C decay = static_cast<C>(segment.decay);
                     for (std::int64_t i = begin; i < end; ++i) {
                       const C old = value[i];
                       const C slope = factor * static_cast<C>(grad[i]) + decay * old;
                       const C moving = has_momentum ? momentum * static_cast<C>(state[i]) + slope : slope;
                       if (has_momentum) store<T>(call.outputs[1], i, moving);
                       store<T>(call.outputs[0], i,
                                old - rate * (options.nesterov ? slope + momentum * moving : moving));
                     }
                   });
}

template <class T>
void adam(const HostCall& call, const AdamOptions& options) {
  using C = Compute<T>;
  if (stays<T>(call, 6)) return;
  const T* value = call.inputs[0].as<T>();
  const T* grad = call.inputs[1].as<T>();
  const T* mean = call.inputs[2].as<T>();
  const T* square = call.inputs[3].as<T>();
  const double learning_rate = read_scalar(call.inputs[4]);
  const double step = read_scalar(call.inputs[5]);
  const C factor = static_cast<C>(gradient_factor(call, 6));
  const double bias_correction = 1 - std::pow(options.beta1, step);
  const C spread = static_cast<C>(1 / std::sqrt(1 - std::pow(options.beta2, step)));
  for_each_segment(options.segments, call.inputs[0].elements(), 12,
                   [&](std::int64_t begin, std::int64_t end, const StepSegment& segment) {
                     const double rate = learning_rate * segment.rate;
                     const C size = static_cast<C>(rate / bias_correction);
                     const C kept = options.decoupled ? static_cast<C>(1 - rate * segment.decay) : C(1);
                     const C added = options.decoupled ? C(0) : static_cast<C>(segment.decay);
                     for (std::int64_t i = begin; i < end; ++i) {
                       const C old = value[i];
                       const C slope = factor * static_cast<C>(grad[i]) + added * old;
                       const C m = static_cast<C>(options.beta1) * static_cast<C>(mean[i]) +
                                   static_cast<C>(1 - options.beta1) * slope;
                       const C v = static_cast<C>(options.beta2) * static_cast<C>(square[i]) +
                                   static_cast<C>(1 - options.beta2) * slope * slope;
                       store<T>(call.outputs[1], i, m);
                       store<T>(call.outputs[2], i, v);
                       store<T>(
                           call.outputs[0], i,
                           kept * old - size * m / (std::sqrt(v) * spread + static_cast<C>(options.epsilon)));
                     }
                   });
}

template <class T>
void rms(const HostCall& call, const RmsOptions& options, std::size_t slices) {
  using C = Compute<T>;
  if (stays<T>(call, slices + 1)) return;
  const bool has_momentum = options.momentum != 0;
  const T* value = call.inputs[0].as<T>();
  const T* grad = call.inputs[1].as<T>();
  const T* square = call.inputs[2].as<T>();
  const T* mean = options.centered ? call.inputs[3].as<T>() : nullptr;
  const T* momentum = has_momentum ? call.inputs[slices - 1].as<T>() : nullptr;
  const double learning_rate = read_scalar(call.inputs[slices]);
  const C factor = static_cast<C>(gradient_factor(call, slices + 1));
  const C kept = static_cast<C>(options.kept);
  const C added = static_cast<C>(options.added);
  for_each_segment(
      options.segments, call.inputs[0].elements(), 12,
      [&](std::int64_t begin, std::int64_t end, const StepSegment& segment) {
        const C rate = static_cast<C>(learning_rate * segment.rate);
        const C decay = static_cast<C>(segment.decay);
        for (std::int64_t i = begin; i < end; ++i) {
          const C old = value[i];
          const C g = factor * static_cast<C>(grad[i]) + decay * old;
          const C v = kept * static_cast<C>(square[i]) + added * g * g;
          const C m = mean != nullptr ? kept * static_cast<C>(mean[i]) + added * g : C(0);
          const C spread = v - m * m;
          const C root = std::sqrt(static_cast<C>(options.initial) + (spread < C(0) ? C(0) : spread));
          const C slope = g / (root + static_cast<C>(options.epsilon));
          const C moving =
              has_momentum ? static_cast<C>(options.momentum) * static_cast<C>(momentum[i]) + slope : slope;
          store<T>(call.outputs[1], i, v);
          if (mean != nullptr) store<T>(call.outputs[2], i, m);
          if (has_momentum) store<T>(call.outputs[slices - 2], i, moving);
          store<T>(call.outputs[0], i, old - rate * moving);
        }
      });
}

}  // namespace

void SgdStep::compute(const HostCall& call) const {
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) { sgd<T>(call, options()); });
}

void AdamStep::compute(const HostCall& call) const {
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { adam<T>(call, options()); });
}

void RmsStep::compute(const HostCall& call) const {
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { rms<T>(call, options(), slices()); });
}

}  // namespace plexaura
