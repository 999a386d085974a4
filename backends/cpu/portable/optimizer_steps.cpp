#include "core/ops/optimizer_steps.h"

#include <array>
#include <cmath>

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

double read_scalar(const HostView& view) {
  return view.dtype() == DType::float64 ? *view.as<double>() : static_cast<double>(*view.as<float>());
}

// By what the gradient is multiplied: input `at` is the loss scale, if there is one.
double gradient_factor(const HostCall& call, std::size_t at) {
  return call.inputs.size() > at ? 1 / read_scalar(call.inputs[at]) : 1;
}

// Whether the loss scale, input `at`, says that everything stays as it is; that is done then. An output may lie in the
// memory of any input.
template <class T>
bool stays(const HostCall& call, std::size_t at) {
  if (call.inputs.size() <= at || read_scalar(call.inputs[at]) != 0) return false;
  std::array<T, 3> kept{};
  const std::size_t slices = call.outputs.size();
  for (std::int64_t i = 0; i < call.inputs[0].type->shape.elements(); ++i) {
    for (std::size_t k = 0; k < slices; ++k) kept.at(k) = call.inputs[k == 0 ? 0 : k + 1].as<T>()[i];
    for (std::size_t k = 0; k < slices; ++k)
      if (call.outputs[k].data != nullptr) call.outputs[k].as<T>()[i] = kept.at(k);
  }
  return true;
}

// Calls body(begin, end, decay) for pieces of the slice with one factor each.
template <class Body>
void for_each_segment(const std::vector<DecaySegment>& segments, std::int64_t count, std::int64_t cost,
                      const Body& body) {
  if (segments.empty()) {
    parallel_pieces(count, cost, [&](std::int64_t begin, std::int64_t end) { body(begin, end, 0.0); });
    return;
  }
  for (const DecaySegment& segment : segments)
    parallel_pieces(segment.count, cost, [&](std::int64_t begin, std::int64_t end) {
      body(segment.offset + begin, segment.offset + end, segment.decay);
    });
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
  const C rate = static_cast<C>(read_scalar(call.inputs[slices]));
  const C factor = static_cast<C>(gradient_factor(call, slices + 1));
  const C momentum = static_cast<C>(options.momentum);
  for_each_segment(
      options.decay, call.inputs[0].elements(), 4, [&](std::int64_t begin, std::int64_t end, double decay) {
        for (std::int64_t i = begin; i < end; ++i) {
          const C old = value[i];
          const C slope = factor * static_cast<C>(grad[i]) + static_cast<C>(decay) * old;
          const C moving = has_momentum ? momentum * static_cast<C>(state[i]) + slope : slope;
          if (has_momentum) store<T>(call.outputs[1], i, moving);
          store<T>(call.outputs[0], i, old - rate * (options.nesterov ? slope + momentum * moving : moving));
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
  const double rate = read_scalar(call.inputs[4]);
  const double step = read_scalar(call.inputs[5]);
  const C factor = static_cast<C>(gradient_factor(call, 6));
  const C size = static_cast<C>(rate / (1 - std::pow(options.beta1, step)));
  const C spread = static_cast<C>(1 / std::sqrt(1 - std::pow(options.beta2, step)));
  for_each_segment(
      options.decay, call.inputs[0].elements(), 12, [&](std::int64_t begin, std::int64_t end, double decay) {
        const C kept = options.decoupled ? static_cast<C>(1 - rate * decay) : C(1);
        const C added = options.decoupled ? C(0) : static_cast<C>(decay);
        for (std::int64_t i = begin; i < end; ++i) {
          const C old = value[i];
          const C slope = factor * static_cast<C>(grad[i]) + added * old;
          const C m = static_cast<C>(options.beta1) * static_cast<C>(mean[i]) +
                      static_cast<C>(1 - options.beta1) * slope;
          const C v = static_cast<C>(options.beta2) * static_cast<C>(square[i]) +
                      static_cast<C>(1 - options.beta2) * slope * slope;
          store<T>(call.outputs[1], i, m);
          store<T>(call.outputs[2], i, v);
          store<T>(call.outputs[0], i,
                   kept * old - size * m / (std::sqrt(v) * spread + static_cast<C>(options.epsilon)));
        }
      });
}

}  // namespace

void portable_sgd_step(const HostCall& call) {
  const SgdOptions& options = op_cast<SgdStep>(call.op).options();
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) { sgd<T>(call, options); });
}

void portable_adam_step(const HostCall& call) {
  const AdamOptions& options = op_cast<AdamStep>(call.op).options();
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) { adam<T>(call, options); });
}

}  // namespace plexaura
