// The steps of the optimizers over slices of the arenas. One thread computes `width` consecutive elements.
// More elements would need so many registers that fewer threads of a GPU could run at once. The kernels read
// learning rate, step and loss scale from the device's memory, so that a recorded step uses their current
// values.

#include <algorithm>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/several.h"
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

// Writes elements. Does nothing if the array is null.
template <class T, int count>
PLEXAURA_DEVICE void write_if(const Global<T>& to, std::int64_t i, const Several<T, count>& values) {
  if (to) to.set_several(i, values);
}

// Reads elements. Returns zeros if the array is null.
template <int count, class T>
PLEXAURA_DEVICE Several<T, count> read_if(const Global<const T>& from, std::int64_t i) {
  if (from) return from.template several<count>(i);
  return {};
}

// The next values in 16 bits. The address is null if no one reads them.
struct ShadowValues {
  Global<bfloat16> short_fraction;
  Global<float16> short_range;

  template <class T, int count>
  PLEXAURA_DEVICE void write(std::int64_t i, const Several<T, count>& values) const {
    write_as(short_fraction, i, values);
    write_as(short_range, i, values);
  }

  template <class Half, class T, int count>
  PLEXAURA_DEVICE static void write_as(const Global<Half>& to, std::int64_t i,
                                       const Several<T, count>& values) {
    if (!to) return;
    Several<Half, count> halves;
    for (int k = 0; k < count; ++k) halves[k] = narrow<Half>(widen(values[k]));
    to.set_several(i, halves);
  }
};

// Elements [begin, begin + count) of the slice, which have the same weight decay and the same multiple of the
// learning rate.
struct Segment {
  std::int64_t begin;
  std::int64_t count;
  double decay;
  double rate;
  bool is_wide = false;  // several elements at once are aligned in all slices
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

  static constexpr int width = std::min(elements_at_once<T>, 4);

  PLEXAURA_DEVICE void operator()(Block& block) const {
    using C = Compute<T>;
    const C rate = static_cast<C>(learning_rate.value() * segment.rate);
    const C factor = static_cast<C>(loss_scale ? 1 / loss_scale.value() : 1.0);
    const C kept = static_cast<C>(momentum);
    const bool stays = loss_scale.is_zero();
    each_group<width>(block, segment.count, segment.is_wide, [&]<int count>(std::int64_t item, Width<count>) {
      const std::int64_t i = segment.begin + item;
      const auto before = value.template several<count>(i);
      const auto slopes = grad.template several<count>(i);
      const auto moment = read_if<count>(state, i);
      Several<T, count> next = before;
      Several<T, count> next_moment = moment;
      for (int k = 0; k < count && !stays; ++k) {
        const C old = widen(before[k]);
        const C slope = factor * widen(slopes[k]) + static_cast<C>(segment.decay) * old;
        const C moving = state ? kept * widen(moment[k]) + slope : slope;
        next_moment[k] = narrow<T>(moving);
        next[k] = narrow<T>(old - rate * (nesterov ? slope + kept * moving : moving));
      }
      write_if(next_state, i, next_moment);
      write_if(next_value, i, next);
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

  static constexpr int width = sizeof(T) == sizeof(double) ? 1 : 4;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    using C = Compute<T>;
    const double rate = learning_rate.value() * segment.rate;
    const C factor = static_cast<C>(loss_scale ? 1 / loss_scale.value() : 1.0);
    const C size = static_cast<C>(rate / (1 - Math::pow(beta1, step.value())));
    const C spread = static_cast<C>(1 / Math::sqrt(1 - Math::pow(beta2, step.value())));
    const C kept = decoupled ? static_cast<C>(1 - rate * segment.decay) : C(1);
    const C added = decoupled ? C(0) : static_cast<C>(segment.decay);
    const bool stays = loss_scale.is_zero();
    each_group<width>(block, segment.count, segment.is_wide, [&]<int count>(std::int64_t item, Width<count>) {
      const std::int64_t i = segment.begin + item;
      const auto before = value.template several<count>(i);
      const auto slopes = grad.template several<count>(i);
      Several<T, count> next = before;
      Several<T, count> m = mean.template several<count>(i);
      Several<T, count> v = square.template several<count>(i);
      for (int k = 0; k < count && !stays; ++k) {
        const C old = widen(before[k]);
        const C slope = factor * widen(slopes[k]) + added * old;
        const C mean_of = static_cast<C>(beta1) * widen(m[k]) + static_cast<C>(1 - beta1) * slope;
        const C square_of = static_cast<C>(beta2) * widen(v[k]) + static_cast<C>(1 - beta2) * slope * slope;
        m[k] = narrow<T>(mean_of);
        v[k] = narrow<T>(square_of);
        next[k] = narrow<T>(kept * old -
                            size * mean_of / (Math::sqrt(square_of) * spread + static_cast<C>(epsilon)));
      }
      write_if(next_mean, i, m);
      write_if(next_square, i, v);
      write_if(next_value, i, next);
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

  static constexpr int width = sizeof(T) == sizeof(double) ? 1 : 2;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    using C = Compute<T>;
    const C rate = static_cast<C>(learning_rate.value() * segment.rate);
    const C factor = static_cast<C>(loss_scale ? 1 / loss_scale.value() : 1.0);
    const C kept = static_cast<C>(kept_square);
    const C added = static_cast<C>(added_square);
    const bool stays = loss_scale.is_zero();
    each_group<width>(block, segment.count, segment.is_wide, [&]<int count>(std::int64_t item, Width<count>) {
      const std::int64_t i = segment.begin + item;
      const auto before = value.template several<count>(i);
      const auto slopes = grad.template several<count>(i);
      Several<T, count> next = before;
      Several<T, count> squares = square.template several<count>(i);
      Several<T, count> means = read_if<count>(mean, i);
      Several<T, count> moments = read_if<count>(momentum, i);
      for (int k = 0; k < count && !stays; ++k) {
        const C old = widen(before[k]);
        const C slope = factor * widen(slopes[k]) + static_cast<C>(segment.decay) * old;
        const C v = kept * widen(squares[k]) + added * slope * slope;
        const C m = mean ? kept * widen(means[k]) + added * slope : C(0);
        const C spread = v - m * m;
        const C root = Math::sqrt(static_cast<C>(initial) + (spread < C(0) ? C(0) : spread));
        const C moving =
            static_cast<C>(kept_momentum) * widen(moments[k]) + slope / (root + static_cast<C>(epsilon));
        squares[k] = narrow<T>(v);
        means[k] = narrow<T>(m);
        moments[k] = narrow<T>(moving);
        next[k] = narrow<T>(old - rate * moving);
      }
      write_if(next_square, i, squares);
      write_if(next_mean, i, means);
      write_if(next_momentum, i, moments);
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

// Enqueues kernel_of(segment) for each segment of the slices, the first `slices` inputs and all outputs. A
// thread computes `width` elements at once.
template <int width, class KernelOf>
void enqueue_segments(const Call& call, const std::vector<StepSegment>& segments, std::size_t slices,
                      const KernelOf& kernel_of) {
  const auto is_aligned = [](const View& view) { return are_aligned(view); };
  const bool are_all_aligned = std::ranges::all_of(call.inputs.first(slices), is_aligned) &&
                               std::ranges::all_of(call.outputs, is_aligned);
  const auto add = [&](Segment segment) {
    segment.is_wide = are_all_aligned && segment.begin % width == 0;
    enqueue(call, blocks_for_groups(segment.count, width, segment.is_wide), kernel_of(segment));
  };
  if (segments.empty()) add({0, call.inputs[0].elements(), 0, 1});
  for (const StepSegment& segment : segments)
    add({segment.offset, segment.count, segment.decay, segment.rate});
}

}  // namespace

void cuda_sgd_step(const Call& call) {
  const SgdOptions& options = op_cast<SgdStep>(call.op).options();
  const bool has_momentum = options.momentum != 0;
  const std::size_t slices = has_momentum ? 3 : 2;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const Global<const T> no_state(nullptr, 0);
    const Global<T> no_next_state(nullptr, 0);
    using Kernel = SgdKernel<T>;
    enqueue_segments<Kernel::width>(call, options.segments, slices, [&](const Segment& segment) {
      return Kernel{call.inputs[0].in<T>(),
                    call.inputs[1].in<T>(),
                    has_momentum ? call.inputs[2].in<T>() : no_state,
                    call.outputs[0].out<T>(),
                    has_momentum ? call.outputs[1].out<T>() : no_next_state,
                    shadow_values(call, slices - 1),
                    step_number(call, slices),
                    step_number(call, slices + 1),
                    segment,
                    options.momentum,
                    options.nesterov};
    });
  });
}

void cuda_adam_step(const Call& call) {
  const AdamOptions& options = op_cast<AdamStep>(call.op).options();
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using Kernel = AdamKernel<T>;
    enqueue_segments<Kernel::width>(call, options.segments, 4, [&](const Segment& segment) {
      return Kernel{call.inputs[0].in<T>(),
                    call.inputs[1].in<T>(),
                    call.inputs[2].in<T>(),
                    call.inputs[3].in<T>(),
                    call.outputs[0].out<T>(),
                    call.outputs[1].out<T>(),
                    call.outputs[2].out<T>(),
                    shadow_values(call, 3),
                    step_number(call, 4),
                    step_number(call, 5),
                    step_number(call, 6),
                    segment,
                    options.beta1,
                    options.beta2,
                    options.epsilon,
                    options.decoupled};
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
    using Kernel = RmsKernel<T>;
    enqueue_segments<Kernel::width>(call, options.segments, slices, [&](const Segment& segment) {
      return Kernel{call.inputs[0].in<T>(),
                    call.inputs[1].in<T>(),
                    call.inputs[2].in<T>(),
                    options.centered ? call.inputs[3].in<T>() : no_state,
                    has_momentum ? call.inputs[slices - 1].in<T>() : no_state,
                    call.outputs[0].out<T>(),
                    call.outputs[1].out<T>(),
                    options.centered ? call.outputs[2].out<T>() : no_next_state,
                    has_momentum ? call.outputs[slices - 2].out<T>() : no_next_state,
                    shadow_values(call, slices - 1),
                    step_number(call, slices),
                    step_number(call, slices + 1),
                    segment,
                    options.kept,
                    options.added,
                    options.initial,
                    options.epsilon,
                    options.momentum};
    });
  });
}

}  // namespace plexaura::cuda
