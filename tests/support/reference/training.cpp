#include <algorithm>
#include <cmath>

#include "core/ops/philox.h"
#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::reference {

namespace {

// Returns the segment of element i.
StepSegment segment_at(const std::vector<StepSegment>& segments, std::int64_t i) {
  for (const StepSegment& segment : segments)
    if (i >= segment.offset && i < segment.offset + segment.count) return segment;
  return {};
}

}  // namespace

// Element i of the global batch is kept if its 32 random bits, as a fraction of 2^32, are at least p.
Tensor dropout_mask(const Shape& shape, const DropoutOptions& options, const StepBlock& block,
                    std::int64_t stream) {
  Tensor mask = zeros(shape);
  const philox::Draws draws(block.seed, static_cast<std::int64_t>(block.step), stream);
  const bool by_sample = options.batch && shape.rank() > 0 && shape[0] > 0;
  const std::int64_t first = by_sample ? block.first_sample * (shape.elements() / shape[0]) : 0;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const std::uint32_t bits = draws.block((first + i) / 4).words[(first + i) % 4];
    mask.as<double>()[static_cast<std::size_t>(i)] = std::ldexp(bits, -32) < options.p ? 0 : 1;
  }
  return mask;
}

std::vector<Tensor> sgd_step(const Tensor& value, const Tensor& grad, const Tensor* momentum, double rate,
                             const SgdOptions& of) {
  Tensor next = value;
  Tensor moving = zeros(value.shape());
  for (std::int64_t i = 0; i < value.elements(); ++i) {
    const StepSegment segment = segment_at(of.segments, i);
    const double g = at(grad, i) + segment.decay * at(value, i);
    at(moving, i) = momentum == nullptr ? g : of.momentum * at(*momentum, i) + g;
    at(next, i) -= rate * segment.rate * (of.nesterov ? g + of.momentum * at(moving, i) : at(moving, i));
  }
  if (momentum == nullptr) return {next};
  return {next, moving};
}

std::vector<Tensor> adam_step(std::span<const Tensor> value_grad_mean_square, double rate, double step,
                              const AdamOptions& of) {
  Tensor value = value_grad_mean_square[0];
  Tensor mean = value_grad_mean_square[2];
  Tensor square = value_grad_mean_square[3];
  for (std::int64_t i = 0; i < value.elements(); ++i) {
    const StepSegment segment = segment_at(of.segments, i);
    const double own_rate = rate * segment.rate;
    const double g = at(value_grad_mean_square[1], i) + (of.decoupled ? 0 : segment.decay * at(value, i));
    at(mean, i) = of.beta1 * at(mean, i) + (1 - of.beta1) * g;
    at(square, i) = of.beta2 * at(square, i) + (1 - of.beta2) * g * g;
    const double unbiased_mean = at(mean, i) / (1 - std::pow(of.beta1, step));
    const double unbiased_square = at(square, i) / (1 - std::pow(of.beta2, step));
    if (of.decoupled) at(value, i) *= 1 - own_rate * segment.decay;
    at(value, i) -= own_rate * unbiased_mean / (std::sqrt(unbiased_square) + of.epsilon);
  }
  return {value, mean, square};
}

std::vector<Tensor> rms_step(std::span<const Tensor> values, double rate, const RmsOptions& of) {
  std::vector<Tensor> next{values[0]};
  next.insert(next.end(), values.begin() + 2, values.end());
  for (std::int64_t i = 0; i < values[0].elements(); ++i) {
    const StepSegment segment = segment_at(of.segments, i);
    const double g = at(values[1], i) + segment.decay * at(values[0], i);
    at(next[1], i) = of.kept * at(next[1], i) + of.added * g * g;
    double spread = at(next[1], i);
    if (of.centered) {
      at(next[2], i) = of.kept * at(next[2], i) + of.added * g;
      spread = std::max(spread - at(next[2], i) * at(next[2], i), 0.0);
    }
    double step = g / (std::sqrt(of.initial + spread) + of.epsilon);
    if (of.momentum != 0) step = at(next.back(), i) = of.momentum * at(next.back(), i) + step;
    at(next[0], i) -= rate * segment.rate * step;
  }
  return next;
}

}  // namespace plexaura::testing::reference
