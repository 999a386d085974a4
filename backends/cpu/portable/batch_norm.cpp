#include "core/ops/batch_norm.h"

#include <cmath>

#include "backends/cpu/portable/loops.h"
#include "backends/cpu/portable/portable.h"
#include "backends/cpu/portable/types.h"

namespace plexaura {

namespace {

using namespace portable;

// x as [N, C, S]: the elements of a channel are N runs of S.
struct Channels {
  explicit Channels(const Shape& x) : samples(x[0]), channels(x[1]) {
    for (std::int64_t axis = 2; axis < x.rank(); ++axis) run *= x[axis];
  }

  std::int64_t count() const { return samples * run; }

  // Calls body(element) for all elements of a channel.
  template <class Body>
  void for_each(std::int64_t channel, const Body& body) const {
    for (std::int64_t n = 0; n < samples; ++n) {
      const std::int64_t first = (n * channels + channel) * run;
      for (std::int64_t i = first; i < first + run; ++i) body(i);
    }
  }

  std::int64_t samples;
  std::int64_t channels;
  std::int64_t run = 1;
};

// Calls f(type of x, type of the statistics).
template <class F>
void dispatch_types(DType x, const F& f) {
  dispatch_floating(x, [&]<class T>(std::type_identity<T> type) {
    f(type, std::type_identity<std::conditional_t<std::is_same_v<T, double>, double, float>>{});
  });
}

struct Moments {
  double mean = 0;
  double variance = 0;
};

template <class T>
Moments moments_of(const Channels& of, const T* src, std::int64_t channel) {
  Moments moments;
  if (of.count() == 0) return moments;
  const auto count = static_cast<double>(of.count());
  of.for_each(channel, [&](std::int64_t i) { moments.mean += static_cast<double>(src[i]); });
  moments.mean /= count;
  of.for_each(channel, [&](std::int64_t i) {
    const double centred = static_cast<double>(src[i]) - moments.mean;
    moments.variance += centred * centred;
  });
  moments.variance /= count;
  return moments;
}

template <class T>
void normalise(const Channels& of, std::int64_t channel, const T* src, T* dst, Moments moments, double scale,
               double shift, double epsilon) {
  const double factor = scale / std::sqrt(moments.variance + epsilon);
  of.for_each(channel, [=](std::int64_t i) {
    dst[i] = T((static_cast<double>(src[i]) - moments.mean) * factor + shift);
  });
}

template <class S>
void store(const HostView& view, std::int64_t i, double value) {
  if (view.data != nullptr) view.as<S>()[i] = static_cast<S>(value);
}

template <class T, class S>
void forward(const HostCall& call, double epsilon) {
  const Channels of(call.inputs[0].shape());
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  parallel_for(of.channels, of.count() * 3, [&](std::int64_t c) {
    const Moments moments = moments_of(of, src, c);
    if (dst != nullptr)
      normalise(of, c, src, dst, moments, call.inputs[1].as<S>()[c], call.inputs[2].as<S>()[c], epsilon);
    store<S>(call.outputs[1], c, moments.mean);
    store<S>(call.outputs[2], c, moments.variance);
  });
}

template <class T, class S>
void backward(const HostCall& call, double epsilon) {
  const Channels of(call.inputs[0].shape());
  const T* src = call.inputs[0].as<T>();
  const T* diff_dst = call.inputs[4].as<T>();
  T* diff_src = call.outputs[0].as<T>();
  parallel_for(of.channels, of.count() * 4, [&](std::int64_t c) {
    const double mean = call.inputs[2].as<S>()[c];
    const double inverse = 1 / std::sqrt(static_cast<double>(call.inputs[3].as<S>()[c]) + epsilon);
    double sum = 0;
    double along = 0;
    of.for_each(c, [&](std::int64_t i) {
      const auto grad = static_cast<double>(diff_dst[i]);
      sum += grad;
      along += grad * (static_cast<double>(src[i]) - mean);
    });
    along *= inverse;
    store<S>(call.outputs[1], c, along);
    store<S>(call.outputs[2], c, sum);
    if (diff_src == nullptr || of.count() == 0) return;
    const auto count = static_cast<double>(of.count());
    const double factor = static_cast<double>(call.inputs[1].as<S>()[c]) * inverse;
    const double tilt = along / count * inverse;
    of.for_each(c, [=](std::int64_t i) {
      const double centred = static_cast<double>(src[i]) - mean;
      diff_src[i] = T(factor * (static_cast<double>(diff_dst[i]) - sum / count - centred * tilt));
    });
  });
}

template <class T, class S>
void inference(const HostCall& call, double epsilon) {
  const Channels of(call.inputs[0].shape());
  parallel_for(of.channels, of.count(), [&](std::int64_t c) {
    const Moments moments{call.inputs[3].as<S>()[c], call.inputs[4].as<S>()[c]};
    normalise(of, c, call.inputs[0].as<T>(), call.outputs[0].as<T>(), moments, call.inputs[1].as<S>()[c],
              call.inputs[2].as<S>()[c], epsilon);
  });
}

}  // namespace

void portable_batch_norm(const HostCall& call) {
  const double epsilon = op_cast<BatchNormOp>(call.op).options().epsilon;
  dispatch_types(call.inputs[0].dtype(), [&]<class T, class S>(std::type_identity<T>, std::type_identity<S>) {
    forward<T, S>(call, epsilon);
  });
}

void portable_batch_norm_grad(const HostCall& call) {
  const double epsilon = op_cast<BatchNormOp>(call.op).options().epsilon;
  dispatch_types(call.inputs[0].dtype(), [&]<class T, class S>(std::type_identity<T>, std::type_identity<S>) {
    backward<T, S>(call, epsilon);
  });
}

void portable_batch_norm_inference(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  const double epsilon = op_cast<BatchNormOp>(call.op).options().epsilon;
  dispatch_types(call.inputs[0].dtype(), [&]<class T, class S>(std::type_identity<T>, std::type_identity<S>) {
    inference<T, S>(call, epsilon);
  });
}

}  // namespace plexaura
