// The steps of the optimizers over slices of the arenas. One thread computes one element. The kernels read
// learning rate, step and loss scale from the device's memory, so that a recorded step uses their current
// values.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "core/ops/optimizer_steps.h"

namespace plexaura::cuda {

// A scalar of the step block, float32 or float64; absent if both are null.
struct StepNumber {
  Global<const float> single;
  Global<const double> wide;

  PLEXAURA_DEVICE double value() const { return wide ? wide[0] : static_cast<double>(single[0]); }
  PLEXAURA_DEVICE explicit operator bool() const { return wide || single; }
  PLEXAURA_DEVICE bool is_zero() const { return *this && value() == 0; }
};

// Writes an element. Does nothing if the array is null.
template <class T>
PLEXAURA_DEVICE void write_if(const Global<T>& to, std::int64_t i, T value) {
  if (to) to[i] = value;
}

// The next values in 16 bits. The address is null if no one reads them.
struct ShadowValues {
  Global<bfloat16> short_fraction;
  Global<float16> short_range;

  template <class T>
  PLEXAURA_DEVICE void write(std::int64_t i, T value) const {
    if (short_fraction) short_fraction[i] = narrow<bfloat16>(widen(value));
    if (short_range) short_range[i] = narrow<float16>(widen(value));
  }
};

// Elements [begin, begin + count) of the slice, which have the same weight decay and the same multiple of the
// learning rate.
struct Segment {
  std::int64_t begin;
  std::int64_t count;
  double decay;
  double rate;
};

template <class T>
struct SgdKernel {
  Global<const T> value;
  Global<const T> grad;
  Global<const T> state;  // null: the step has no momentum
  Global<T> next_value;
  Global<T> next_state;
  ShadowValues shadow;
  StepNumber learning_rate;
  StepNumber loss_scale;
  Segment segment;
  double momentum;
  bool nesterov;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    using C = Compute<T>;
    const C rate = static_cast<C>(learning_rate.value() * segment.rate);
    const C factor = static_cast<C>(loss_scale ? 1 / loss_scale.value() : 1.0);
    const C kept = static_cast<C>(momentum);
    const bool stays = loss_scale.is_zero();
    block.each_item(segment.count, [&](std::int64_t item) {
      const std::int64_t i = segment.begin + item;
      if (stays) {
        const T same = value[i];
        if (state) write_if(next_state, i, state[i]);
        write_if(next_value, i, same);
        shadow.write(i, same);
        return;
      }
      const C old = widen(value[i]);
      const C slope = factor * widen(grad[i]) + static_cast<C>(segment.decay) * old;
      const C moving = state ? kept * widen(state[i]) + slope : slope;
      if (state && next_state) next_state[i] = narrow<T>(moving);
      const T next = narrow<T>(old - rate * (nesterov ? slope + kept * moving : moving));
      if (next_value) next_value[i] = next;
      shadow.write(i, next);
    });
  }
};

template <class T>
struct AdamKernel {
  Global<const T> value;
  Global<const T> grad;
  Global<const T> mean;
  Global<const T> square;
  Global<T> next_value;
  Global<T> next_mean;
  Global<T> next_square;
  ShadowValues shadow;
  StepNumber learning_rate;
  StepNumber step;
  StepNumber loss_scale;
  Segment segment;
  double beta1;
  double beta2;
  double epsilon;
  bool decoupled;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    using C = Compute<T>;
    const double rate = learning_rate.value() * segment.rate;
    const C factor = static_cast<C>(loss_scale ? 1 / loss_scale.value() : 1.0);
    const C size = static_cast<C>(rate / (1 - Math::pow(beta1, step.value())));
    const C spread = static_cast<C>(1 / Math::sqrt(1 - Math::pow(beta2, step.value())));
    const C kept = decoupled ? static_cast<C>(1 - rate * segment.decay) : C(1);
    const C added = decoupled ? C(0) : static_cast<C>(segment.decay);
    const bool stays = loss_scale.is_zero();
    block.each_item(segment.count, [&](std::int64_t item) {
      const std::int64_t i = segment.begin + item;
      if (stays) {
        const T same = value[i];
        const T same_mean = mean[i];
        const T same_square = square[i];
        write_if(next_value, i, same);
        write_if(next_mean, i, same_mean);
        write_if(next_square, i, same_square);
        shadow.write(i, same);
        return;
      }
      const C old = widen(value[i]);
      const C slope = factor * widen(grad[i]) + added * old;
      const C m = static_cast<C>(beta1) * widen(mean[i]) + static_cast<C>(1 - beta1) * slope;
      const C v = static_cast<C>(beta2) * widen(square[i]) + static_cast<C>(1 - beta2) * slope * slope;
      if (next_mean) next_mean[i] = narrow<T>(m);
      if (next_square) next_square[i] = narrow<T>(v);
      const T next = narrow<T>(kept * old - size * m / (Math::sqrt(v) * spread + static_cast<C>(epsilon)));
      if (next_value) next_value[i] = next;
      shadow.write(i, next);
    });
  }
};

template <class T>
struct RmsKernel {
  Global<const T> value;
  Global<const T> grad;
  Global<const T> square;
  Global<const T> mean;      // null: the step is not centered
  Global<const T> momentum;  // null: the step has no momentum
  Global<T> next_value;
  Global<T> next_square;
  Global<T> next_mean;
  Global<T> next_momentum;
  ShadowValues shadow;
  StepNumber learning_rate;
  StepNumber loss_scale;
  Segment segment;
  double kept_square;
  double added_square;
  double initial;
  double epsilon;
  double kept_momentum;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    using C = Compute<T>;
    const C rate = static_cast<C>(learning_rate.value() * segment.rate);
    const C factor = static_cast<C>(loss_scale ? 1 / loss_scale.value() : 1.0);
    const C kept = static_cast<C>(kept_square);
    const C added = static_cast<C>(added_square);
    const bool stays = loss_scale.is_zero();
    block.each_item(segment.count, [&](std::int64_t item) {
      const std::int64_t i = segment.begin + item;
      const T before = value[i];
      const T square_before = square[i];
      const T mean_before = mean ? mean[i] : narrow<T>(C(0));
      const T momentum_before = momentum ? momentum[i] : narrow<T>(C(0));
      if (stays) {
        write_if(next_value, i, before);
        write_if(next_square, i, square_before);
        write_if(next_mean, i, mean_before);
        write_if(next_momentum, i, momentum_before);
        shadow.write(i, before);
        return;
      }
      const C old = widen(before);
      const C slope = factor * widen(grad[i]) + static_cast<C>(segment.decay) * old;
      const C v = kept * widen(square_before) + added * slope * slope;
      const C m = mean ? kept * widen(mean_before) + added * slope : C(0);
      const C spread = v - m * m;
      const C root = Math::sqrt(static_cast<C>(initial) + (spread < C(0) ? C(0) : spread));
      const C moving =
          static_cast<C>(kept_momentum) * widen(momentum_before) + slope / (root + static_cast<C>(epsilon));
      write_if(next_square, i, narrow<T>(v));
      write_if(next_mean, i, narrow<T>(m));
      write_if(next_momentum, i, narrow<T>(moving));
      const T next = narrow<T>(old - rate * moving);
      write_if(next_value, i, next);
      shadow.write(i, next);
    });
  }
};

namespace {

StepNumber step_number(const Call& call, std::size_t input) {
  const Global<const float> no_single(nullptr, 0);
  const Global<const double> no_wide(nullptr, 0);
  if (input >= call.inputs.size()) return {no_single, no_wide};
  const View& view = call.inputs[input];
  if (view.dtype() == DType::float64) return {no_single, view.in<double>()};
  return {view.in<float>(), no_wide};
}

// Returns the output that follows the outputs of the op itself. Returns null values if the call has no such
// output.
ShadowValues shadow_values(const Call& call, std::size_t own_outputs) {
  if (call.outputs.size() == own_outputs) return {};
  const View& view = call.outputs[own_outputs];
  if (view.dtype() == DType::bfloat16) return {view.out<bfloat16>(), {}};
  return {{}, view.out<float16>()};
}

// Calls body(segment) for each segment of the slice.
template <class Body>
void for_each_segment(const std::vector<StepSegment>& segments, std::int64_t count, const Body& body) {
  if (segments.empty()) body(Segment{0, count, 0, 1});
  for (const StepSegment& segment : segments)
    body(Segment{segment.offset, segment.count, segment.decay, segment.rate});
}

}  // namespace

void cuda_sgd_step(const Call& call) {
  const SgdOptions& options = op_cast<SgdStep>(call.op).options();
  const bool has_momentum = options.momentum != 0;
  const std::size_t slices = has_momentum ? 3 : 2;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const Global<const T> no_state(nullptr, 0);
    const Global<T> no_next_state(nullptr, 0);
    for_each_segment(options.segments, call.inputs[0].elements(), [&](const Segment& segment) {
      enqueue(call, blocks_for(segment.count),
              SgdKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<T>(),
                           has_momentum ? call.inputs[2].in<T>() : no_state, call.outputs[0].out<T>(),
                           has_momentum ? call.outputs[1].out<T>() : no_next_state,
                           shadow_values(call, slices - 1), step_number(call, slices),
                           step_number(call, slices + 1), segment, options.momentum, options.nesterov});
    });
  });
}

void cuda_adam_step(const Call& call) {
  const AdamOptions& options = op_cast<AdamStep>(call.op).options();
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    for_each_segment(options.segments, call.inputs[0].elements(), [&](const Segment& segment) {
      enqueue(call, blocks_for(segment.count),
              AdamKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<T>(), call.inputs[2].in<T>(),
                            call.inputs[3].in<T>(), call.outputs[0].out<T>(), call.outputs[1].out<T>(),
                            call.outputs[2].out<T>(), shadow_values(call, 3), step_number(call, 4),
                            step_number(call, 5), step_number(call, 6), segment, options.beta1, options.beta2,
                            options.epsilon, options.decoupled});
    });
  });
}

void cuda_rms_step(const Call& call) {
  const auto& op = op_cast<RmsStep>(call.op);
  const RmsOptions& options = op.options();
  const bool has_momentum = options.momentum != 0;
  const std::size_t slices = op.slices();
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const Global<const T> no_state(nullptr, 0);
    const Global<T> no_next_state(nullptr, 0);
    for_each_segment(options.segments, call.inputs[0].elements(), [&](const Segment& segment) {
      enqueue(call, blocks_for(segment.count),
              RmsKernel<T>{
                  call.inputs[0].in<T>(), call.inputs[1].in<T>(), call.inputs[2].in<T>(),
                  options.centered ? call.inputs[3].in<T>() : no_state,
                  has_momentum ? call.inputs[slices - 1].in<T>() : no_state, call.outputs[0].out<T>(),
                  call.outputs[1].out<T>(), options.centered ? call.outputs[2].out<T>() : no_next_state,
                  has_momentum ? call.outputs[slices - 2].out<T>() : no_next_state,
                  shadow_values(call, slices - 1), step_number(call, slices), step_number(call, slices + 1),
                  segment, options.kept, options.added, options.initial, options.epsilon, options.momentum});
    });
  });
}

}  // namespace plexaura::cuda
