#include "core/ops/batch_norm.h"

#include <cmath>

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"

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

// What has one element per channel.
template <class T>
using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
double element(const HostView& view, std::int64_t channel) {
  return static_cast<double>(view.as<Statistic<T>>()[channel]);
}

template <class T>
void store(const HostView& view, std::int64_t channel, double value) {
  if (view.data != nullptr) view.as<Statistic<T>>()[channel] = static_cast<Statistic<T>>(value);
}

// Mean and variance.
template <class T>
std::pair<double, double> moments_of(const Channels& of, const T* src, std::int64_t channel) {
  if (of.count() == 0) return {0, 0};
  const auto count = static_cast<double>(of.count());
  double mean = 0;
  of.for_each(channel, [&](std::int64_t i) { mean += static_cast<double>(src[i]); });
  mean /= count;
  double variance = 0;
  of.for_each(channel, [&](std::int64_t i) {
    const double centred = static_cast<double>(src[i]) - mean;
    variance += centred * centred;
  });
  return {mean, variance / count};
}

template <class T>
void moments(const HostCall& call, double epsilon) {
  const Channels of(call.inputs[0].shape());
  parallel_for(of.channels, of.count() * 3, [&](std::int64_t c) {
    const auto [mean, variance] = moments_of(of, call.inputs[0].as<T>(), c);
    store<T>(call.outputs[0], c, mean);
    store<T>(call.outputs[1], c, variance);
    store<T>(call.outputs[2], c, 1 / std::sqrt(variance + epsilon));
  });
}

template <class T>
void moments_grad(const HostCall& call) {
  const Channels of(call.inputs[0].shape());
  const T* src = call.inputs[0].as<T>();
  T* diff_src = call.outputs[0].as<T>();
  const auto count = static_cast<double>(of.count());
  parallel_for(of.channels, of.count(), [&](std::int64_t c) {
    const double mean = element<T>(call.inputs[1], c);
    const double inverse = element<T>(call.inputs[2], c);
    const double level = element<T>(call.inputs[3], c) / count;
    const double tilt = inverse * inverse * inverse * element<T>(call.inputs[4], c) / count;
    of.for_each(
        c, [=](std::int64_t i) { diff_src[i] = T(level - (static_cast<double>(src[i]) - mean) * tilt); });
  });
}

template <class T>
void normalise(const HostCall& call) {
  const Channels of(call.inputs[0].shape());
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  parallel_for(of.channels, of.count(), [&](std::int64_t c) {
    const double factor = element<T>(call.inputs[1], c) * element<T>(call.inputs[4], c);
    const double shift = element<T>(call.inputs[2], c);
    const double mean = element<T>(call.inputs[3], c);
    of.for_each(c,
                [=](std::int64_t i) { dst[i] = T((static_cast<double>(src[i]) - mean) * factor + shift); });
  });
}

template <class T>
void normalise_grad(const HostCall& call) {
  const Channels of(call.inputs[0].shape());
  const T* src = call.inputs[0].as<T>();
  const T* diff_dst = call.inputs[4].as<T>();
  T* diff_src = call.outputs[0].as<T>();
  parallel_for(of.channels, of.count() * 3, [&](std::int64_t c) {
    const double scale = element<T>(call.inputs[1], c);
    const double mean = element<T>(call.inputs[2], c);
    const double inverse = element<T>(call.inputs[3], c);
    double sum = 0;
    double along = 0;
    of.for_each(c, [&](std::int64_t i) {
      const auto grad = static_cast<double>(diff_dst[i]);
      sum += grad;
      along += grad * (static_cast<double>(src[i]) - mean);
    });
    store<T>(call.outputs[1], c, inverse * along);
    store<T>(call.outputs[2], c, sum);
    store<T>(call.outputs[3], c, -scale * inverse * sum);
    store<T>(call.outputs[4], c, scale * along);
    if (diff_src == nullptr) return;
    const double factor = scale * inverse;
    of.for_each(c, [=](std::int64_t i) { diff_src[i] = T(static_cast<double>(diff_dst[i]) * factor); });
  });
}

}  // namespace

void portable_moments(const HostCall& call) {
  const double epsilon = op_cast<Moments>(call.op).options().epsilon;
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { moments<T>(call, epsilon); });
}

void portable_moments_grad(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) { moments_grad<T>(call); });
}

void portable_normalise(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) { normalise<T>(call); });
}

void portable_normalise_grad(const HostCall& call) {
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) { normalise_grad<T>(call); });
}

}  // namespace plexaura
