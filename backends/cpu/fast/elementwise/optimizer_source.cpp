#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/optimizer_steps.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_element = 0.8;

struct SgdNumbers {
  float rate;
  float momentum;
  float decay;
  float grad;           // factor of the gradient: 1 / loss scale
  float slope_weight;   // weight of the slope in a step with momentum: 1 for Nesterov's, else 0
  float moving_weight;  // weight of the new momentum in the step
};

PLEXAURA_CLONES void sgd_loop(const float* value, const float* grad, float* new_value, std::int64_t count,
                              SgdNumbers by) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    new_value[i] = value[i] - by.rate * (by.grad * grad[i] + by.decay * value[i]);
}

PLEXAURA_CLONES void momentum_loop(const float* value, const float* grad, const float* state,
                                   float* new_value, float* new_state, std::int64_t count, SgdNumbers by) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float old = value[i];
    const float slope = by.grad * grad[i] + by.decay * old;
    const float moving = by.momentum * state[i] + slope;
    new_state[i] = moving;
    new_value[i] = old - by.rate * (by.slope_weight * slope + by.moving_weight * moving);
  }
}

struct AdamNumbers {
  float beta1, rest1;  // rest1 is 1 - beta1
  float beta2, rest2;
  float epsilon;
  float size;    // learning rate / (1 - beta1^step)
  float spread;  // 1 / sqrt(1 - beta2^step)
  float kept;    // factor of the old value: AdamW's decay
  float added;   // weight of the value in the slope: Adam's decay
  float grad;    // factor of the gradient: 1 / loss scale
};

struct AdamArrays {
  const float *value, *grad, *mean, *square;
  float *new_value, *new_mean, *new_square;
};

PLEXAURA_CLONES void adam_loop(AdamArrays of, std::int64_t begin, std::int64_t end, AdamNumbers by) {
  const float *value = of.value, *grad = of.grad, *mean = of.mean, *square = of.square;
  float *new_value = of.new_value, *new_mean = of.new_mean, *new_square = of.new_square;
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) {
    const float old = value[i];
    const float slope = by.grad * grad[i] + by.added * old;
    const float m = by.beta1 * mean[i] + by.rest1 * slope;
    const float v = by.beta2 * square[i] + by.rest2 * slope * slope;
    new_mean[i] = m;
    new_square[i] = v;
    new_value[i] = by.kept * old - by.size * m / (std::sqrt(v) * by.spread + by.epsilon);
  }
}

struct RmsNumbers {
  float rate = 0;
  float decay = 0;
  float grad;         // factor of the gradient: 1 / loss scale
  float kept, added;  // factors of the old mean square and of the new square
  float mean_added;   // factor of the gradient in its mean: 0 unless centered
  float initial;
  float epsilon;
  float momentum;
};

struct RmsArrays {
  const float *value, *grad, *square, *mean, *momentum;
  float *new_value, *new_square, *new_mean, *new_momentum;
};

PLEXAURA_CLONES void rms_loop(RmsArrays of, std::int64_t count, RmsNumbers by) {
  const float *value = of.value, *grad = of.grad, *square = of.square, *mean = of.mean;
  const float* momentum = of.momentum;
  float *new_value = of.new_value, *new_square = of.new_square, *new_mean = of.new_mean;
  float* new_momentum = of.new_momentum;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float old = value[i];
    const float slope = by.grad * grad[i] + by.decay * old;
    const float v = by.kept * square[i] + by.added * slope * slope;
    const float m = by.kept * mean[i] + by.mean_added * slope;
    const float spread = v - m * m;
    const float root = std::sqrt(by.initial + (spread < 0 ? 0 : spread));
    const float moving = by.momentum * momentum[i] + slope / (root + by.epsilon);
    new_square[i] = v;
    new_mean[i] = m;
    new_momentum[i] = moving;
    new_value[i] = old - by.rate * moving;
  }
}

// Calls body(begin, end, segment) for pieces that each lie in one segment.
template <class Body>
void for_each_segment(const std::vector<StepSegment>& segments, std::int64_t count, const Body& body) {
  const auto run = [&](const StepSegment& segment) {
    parallel_pieces(segment.count, nanoseconds_per_element, 64, [&](std::int64_t begin, std::int64_t end) {
      body(segment.offset + begin, segment.offset + end, segment);
    });
  };
  if (segments.empty()) run({.count = count});
  for (const StepSegment& segment : segments) run(segment);
}

// The scalar inputs, which follow the slices of arenas.
class Scalars {
 public:
  Scalars(const RegionQuery& query, std::size_t slices) : slices_(slices) {
    for (const Value input : query.region.inputs) dtypes_.push_back(query.type(input).dtype);
  }

  double read(const Binding& binding, std::size_t index) const {
    const Address address = binding.inputs[slices_ + index];
    return dtypes_[slices_ + index] == DType::float64 ? *reinterpret_cast<const double*>(address)
                                                      : static_cast<double>(*floats(address));
  }

  // True if the loss scale says that this step is skipped. Then also copies the old values and state to the
  // outputs.
  bool stays(const Binding& binding, std::size_t index, std::int64_t count) const {
    if (slices_ + index >= dtypes_.size() || read(binding, index) != 0) return false;
    for (std::size_t output = 0; output < binding.outputs.size(); ++output) {
      const float* from = floats(binding.inputs[output == 0 ? 0 : output + 1]);
      float* to = floats(binding.outputs[output]);
      if (to != from) std::copy_n(from, count, to);
    }
    return true;
  }

  // Returns 1 / loss scale if there is a scalar with that index, which then is the loss scale; otherwise 1.
  float gradient_factor(const Binding& binding, std::size_t index) const {
    return slices_ + index < dtypes_.size() ? static_cast<float>(1 / read(binding, index)) : 1.F;
  }

 private:
  std::size_t slices_;
  std::vector<DType> dtypes_;
};

void run_sgd(const Binding& binding, const SgdOptions& options, std::int64_t count, const Scalars& scalars) {
  if (scalars.stays(binding, 1, count)) return;
  const bool has_momentum = options.momentum != 0;
  const float* value = floats(binding.inputs[0]);
  const float* grad = floats(binding.inputs[1]);
  const float* state = has_momentum ? floats(binding.inputs[2]) : nullptr;
  float* new_value = floats(binding.outputs[0]);
  float* new_state = has_momentum ? floats(binding.outputs[1]) : nullptr;
  SgdNumbers numbers{};
  const double learning_rate = scalars.read(binding, 0);
  numbers.grad = scalars.gradient_factor(binding, 1);
  numbers.momentum = static_cast<float>(options.momentum);
  numbers.slope_weight = options.nesterov ? 1.F : 0.F;
  numbers.moving_weight = options.nesterov ? numbers.momentum : 1.F;
  for_each_segment(options.segments, count,
                   [=](std::int64_t begin, std::int64_t end, const StepSegment& segment) {
                     SgdNumbers by = numbers;
                     by.rate = static_cast<float>(learning_rate * segment.rate);
                     by.decay = static_cast<float>(segment.decay);
                     if (has_momentum)
                       momentum_loop(value + begin, grad + begin, state + begin, new_value + begin,
                                     new_state + begin, end - begin, by);
                     else
                       sgd_loop(value + begin, grad + begin, new_value + begin, end - begin, by);
                   });
}

void run_adam(const Binding& binding, const AdamOptions& options, std::int64_t count,
              const Scalars& scalars) {
  if (scalars.stays(binding, 2, count)) return;
  const AdamArrays arrays{floats(binding.inputs[0]), floats(binding.inputs[1]),  floats(binding.inputs[2]),
                          floats(binding.inputs[3]), floats(binding.outputs[0]), floats(binding.outputs[1]),
                          floats(binding.outputs[2])};
  const double learning_rate = scalars.read(binding, 0);
  const double step = scalars.read(binding, 1);
  const double bias_correction = 1 - std::pow(options.beta1, step);
  AdamNumbers numbers{};
  numbers.grad = scalars.gradient_factor(binding, 2);
  numbers.beta1 = static_cast<float>(options.beta1);
  numbers.rest1 = static_cast<float>(1 - options.beta1);
  numbers.beta2 = static_cast<float>(options.beta2);
  numbers.rest2 = static_cast<float>(1 - options.beta2);
  numbers.epsilon = static_cast<float>(options.epsilon);
  numbers.spread = static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, step)));
  for_each_segment(options.segments, count,
                   [=, &options](std::int64_t begin, std::int64_t end, const StepSegment& segment) {
                     AdamNumbers by = numbers;
                     const double rate = learning_rate * segment.rate;
                     by.size = static_cast<float>(rate / bias_correction);
                     by.kept = options.decoupled ? static_cast<float>(1 - rate * segment.decay) : 1.F;
                     by.added = options.decoupled ? 0.F : static_cast<float>(segment.decay);
                     adam_loop(arrays, begin, end, by);
                   });
}

// Runs the loop over elements [begin, end) in blocks. In place of a state that the step does not have, it reads zeros and
// writes numbers that nobody reads.
void rms_blocks(const RmsArrays& arrays, std::int64_t begin, std::int64_t end, const RmsNumbers& by) {
  constexpr std::int64_t block = 512;
  static constexpr std::array<float, block> zeros{};
  std::array<float, block> unread;
  for (std::int64_t at = begin; at < end; at += block) {
    const auto from = [&](const float* array) { return array == nullptr ? zeros.data() : array + at; };
    const auto to = [&](float* array) { return array == nullptr ? unread.data() : array + at; };
    rms_loop(
        {from(arrays.value), from(arrays.grad), from(arrays.square), from(arrays.mean), from(arrays.momentum),
         to(arrays.new_value), to(arrays.new_square), to(arrays.new_mean), to(arrays.new_momentum)},
        std::min(block, end - at), by);
  }
}

void run_rms(const Binding& binding, const RmsOptions& options, std::int64_t count, const Scalars& scalars) {
  if (scalars.stays(binding, 1, count)) return;
  const bool has_momentum = options.momentum != 0;
  const std::size_t last = binding.outputs.size() - 1;  // the momentum, if there is one
  RmsArrays arrays{.value = floats(binding.inputs[0]),
                   .grad = floats(binding.inputs[1]),
                   .square = floats(binding.inputs[2]),
                   .mean = options.centered ? floats(binding.inputs[3]) : nullptr,
                   .momentum = has_momentum ? floats(binding.inputs[last + 1]) : nullptr,
                   .new_value = floats(binding.outputs[0]),
                   .new_square = floats(binding.outputs[1]),
                   .new_mean = options.centered ? floats(binding.outputs[2]) : nullptr,
                   .new_momentum = has_momentum ? floats(binding.outputs[last]) : nullptr};
  const double learning_rate = scalars.read(binding, 0);
  const auto added = static_cast<float>(options.added);
  RmsNumbers numbers{.grad = scalars.gradient_factor(binding, 1),
                     .kept = static_cast<float>(options.kept),
                     .added = added,
                     .mean_added = options.centered ? added : 0.F,
                     .initial = static_cast<float>(options.initial),
                     .epsilon = static_cast<float>(options.epsilon),
                     .momentum = static_cast<float>(options.momentum)};
  for_each_segment(options.segments, count,
                   [=](std::int64_t begin, std::int64_t end, const StepSegment& segment) {
                     RmsNumbers by = numbers;
                     by.rate = static_cast<float>(learning_rate * segment.rate);
                     by.decay = static_cast<float>(segment.decay);
                     rms_blocks(arrays, begin, end, by);
                   });
}

std::shared_ptr<const Kernel> make_for(const RegionQuery& query) {
  const std::vector<Value>& inputs = query.region.inputs;
  const std::int64_t count = query.type(inputs[0]).shape.elements();
  if (query.region.kind == "sgd_step") {
    const SgdOptions& options = op_cast<SgdStep>(query.op()).options();
    return make_kernel([options, count, scalars = Scalars(query, options.momentum != 0 ? 3 : 2)](
                           const Binding& binding) { run_sgd(binding, options, count, scalars); });
  }
  if (query.region.kind == "rms_step") {
    const auto& op = op_cast<RmsStep>(query.op());
    return make_kernel([options = op.options(), count, scalars = Scalars(query, op.slices())](
                           const Binding& binding) { run_rms(binding, options, count, scalars); });
  }
  return make_kernel([options = op_cast<AdamStep>(query.op()).options(), count, scalars = Scalars(query, 4)](
                         const Binding& binding) { run_adam(binding, options, count, scalars); });
}

class OptimizerSource final : public KernelSource {
 public:
  Denormals denormals() const override { return Denormals::flushed; }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const std::string& kind = query.region.kind;
    if (kind != "sgd_step" && kind != "adam_step" && kind != "rms_step") return {};
    if (!is_float32(query.graph, query.region.inputs[0]) ||
        !has_elements(query.graph, query.region.inputs[0]))
      return {};
    if (!std::ranges::all_of(query.wanted, std::identity{})) return {};
    Candidate candidate = row_major_candidate(query);
    candidate.in_place = {{0, 0}};
    for (std::size_t output = 1; output < query.region.outputs.size(); ++output)
      candidate.in_place.emplace_back(output, output + 1);
    candidate.make = [query] { return make_for(query); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_optimizer_source() { return std::make_unique<OptimizerSource>(); }

}  // namespace plexaura::fast
