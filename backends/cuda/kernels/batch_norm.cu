// Batch norm in its two ops and their gradients. Where a channel is summed up, a block does it; where the channels lie
// innermost, blocks share them out.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/column_sums.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/joins.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"
#include "core/ops/batch_norm.h"

namespace plexaura::cuda {

// x as [N, C, S]: the elements of a channel are N runs of S.
struct Channels {
  std::int64_t samples;
  std::int64_t channels;
  std::int64_t run;

  PLEXAURA_HD std::int64_t count() const { return samples * run; }
  bool innermost() const { return run == 1; }
  Columns columns() const { return {samples, channels}; }  // where they lie innermost
  PLEXAURA_DEVICE std::int64_t place(std::int64_t channel, std::int64_t i) const {
    return (i / run * channels + channel) * run + i % run;
  }
  PLEXAURA_DEVICE std::int64_t channel_of(std::int64_t place) const { return place / run % channels; }
};

// What has one element per channel.
template <class T>
using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
struct MomentsKernel {
  Global<const T> src;
  Global<Statistic<T>> mean;
  Global<Statistic<T>> variance;
  Global<Statistic<T>> inverse;
  Channels of;
  double epsilon;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, double, parts, threads);
    PLEXAURA_SHARED(block, double, centre, 1);
    const double count = of.count() > 0 ? static_cast<double>(of.count()) : 1.0;
    for (std::int64_t c = block.index(); c < of.channels; c += block.blocks()) {
      const auto element = [&](std::int64_t i) { return static_cast<double>(widen(src[of.place(c, i)])); };
      sum_all<double>(block, parts, of.count(), element);
      block.each_thread([&](int thread) {
        if (thread == 0) centre[0] = parts[0] / count;
      });
      sum_all<double>(block, parts, of.count(), [&](std::int64_t i) {
        const double centred = element(i) - centre[0];
        return centred * centred;
      });
      block.each_thread([&](int thread) {
        if (thread > 0) return;
        const double spread = parts[0] / count;
        if (mean) mean[c] = static_cast<Statistic<T>>(static_cast<double>(centre[0]));
        if (variance) variance[c] = static_cast<Statistic<T>>(spread);
        if (inverse) inverse[c] = static_cast<Statistic<T>>(1 / Math::sqrt(spread + epsilon));
      });
    }
  }
};

// Of a channel that lies innermost: how far elements are from its first one, which is about as far from zero as its mean.
template <class T>
struct MomentsTerms {
  Global<const T> src;

  PLEXAURA_DEVICE TwoSums operator()(std::int64_t place, std::int64_t channel) const {
    const double centred = static_cast<double>(widen(src[place])) - static_cast<double>(widen(src[channel]));
    return {centred, centred * centred};
  }
};

template <class T>
struct MomentsOfSumsKernel {
  Global<const T> src;
  Global<double> sums;
  Global<Statistic<T>> mean;
  Global<Statistic<T>> variance;
  Global<Statistic<T>> inverse;
  Columns of;
  double epsilon;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    const double count = of.rows > 0 ? static_cast<double>(of.rows) : 1.0;
    block.each_item(of.columns, [&](std::int64_t c) {
      const TwoSums sum = total(of, sums, c);
      const double centre = of.rows > 0 ? static_cast<double>(widen(src[c])) : 0.0;
      const double moved = sum.first / count;
      const double spread = sum.second / count - moved * moved;
      const double positive = spread < 0 ? 0.0 : spread;
      if (mean) mean[c] = static_cast<Statistic<T>>(centre + moved);
      if (variance) variance[c] = static_cast<Statistic<T>>(positive);
      if (inverse) inverse[c] = static_cast<Statistic<T>>(1 / Math::sqrt(positive + epsilon));
    });
  }
};

template <class T>
struct MomentsGradKernel {
  Global<const T> src;
  Global<const Statistic<T>> mean;
  Global<const Statistic<T>> inverse;
  Global<const Statistic<T>> diff_mean;
  Global<const Statistic<T>> diff_variance;
  Global<T> diff_src;
  Channels of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    const auto count = static_cast<double>(of.count());
    block.each_item(diff_src.count(), [&](std::int64_t i) {
      const std::int64_t c = of.channel_of(i);
      const double scale = inverse[c];
      const double tilt = scale * scale * scale * diff_variance[c] / count;
      const double centred = static_cast<double>(widen(src[i])) - mean[c];
      diff_src[i] = narrow<T>(diff_mean[c] / count - centred * tilt);
    });
  }
};

template <class T>
struct NormaliseKernel {
  Global<const T> src;
  Global<const Statistic<T>> scale;
  Global<const Statistic<T>> shift;
  Global<const Statistic<T>> mean;
  Global<const Statistic<T>> inverse;
  Global<T> dst;
  Channels of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t i) {
      const std::int64_t c = of.channel_of(i);
      const double factor = static_cast<double>(scale[c]) * static_cast<double>(inverse[c]);
      dst[i] = narrow<T>((static_cast<double>(widen(src[i])) - mean[c]) * factor + shift[c]);
    });
  }
};

// What is one number a channel, of the sums of its gradients, and of its gradients along x.
template <class T>
struct ChannelGrads {
  Global<const Statistic<T>> scale;
  Global<const Statistic<T>> inverse;
  Global<Statistic<T>> diff_scale;
  Global<Statistic<T>> diff_shift;
  Global<Statistic<T>> diff_mean;
  Global<Statistic<T>> diff_inverse;

  PLEXAURA_DEVICE void store(std::int64_t c, double sum, double along) const {
    if (diff_scale) diff_scale[c] = static_cast<Statistic<T>>(inverse[c] * along);
    if (diff_shift) diff_shift[c] = static_cast<Statistic<T>>(sum);
    if (diff_mean)
      diff_mean[c] = static_cast<Statistic<T>>(-static_cast<double>(scale[c]) * inverse[c] * sum);
    if (diff_inverse) diff_inverse[c] = static_cast<Statistic<T>>(scale[c] * along);
  }
};

template <class T>
struct NormaliseGradTerms {
  Global<const T> src;
  Global<const Statistic<T>> mean;
  Global<const T> diff_dst;

  PLEXAURA_DEVICE TwoSums operator()(std::int64_t place, std::int64_t channel) const {
    const auto grad = static_cast<double>(widen(diff_dst[place]));
    return {grad, grad * (static_cast<double>(widen(src[place])) - mean[channel])};
  }
};

template <class T>
struct NormaliseGradKernel {
  NormaliseGradTerms<T> terms;
  ChannelGrads<T> grads;
  Channels of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, double, parts, threads);
    PLEXAURA_SHARED(block, double, sum, 1);
    for (std::int64_t c = block.index(); c < of.channels; c += block.blocks()) {
      sum_all<double>(block, parts, of.count(),
                      [&](std::int64_t i) { return terms(of.place(c, i), c).first; });
      block.each_thread([&](int thread) {
        if (thread == 0) sum[0] = static_cast<double>(parts[0]);
      });
      sum_all<double>(block, parts, of.count(),
                      [&](std::int64_t i) { return terms(of.place(c, i), c).second; });
      block.each_thread([&](int thread) {
        if (thread == 0) grads.store(c, sum[0], parts[0]);
      });
    }
  }
};

template <class T>
struct NormaliseGradOfSumsKernel {
  Global<double> sums;
  ChannelGrads<T> grads;
  Columns of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(of.columns, [&](std::int64_t c) {
      const TwoSums sum = total(of, sums, c);
      grads.store(c, sum.first, sum.second);
    });
  }
};

template <class T>
struct NormaliseInputGradKernel {
  Global<const Statistic<T>> scale;
  Global<const Statistic<T>> inverse;
  Global<const T> diff_dst;
  Global<T> diff_src;
  Channels of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(diff_src.count(), [&](std::int64_t i) {
      const std::int64_t c = of.channel_of(i);
      const double factor = static_cast<double>(scale[c]) * static_cast<double>(inverse[c]);
      diff_src[i] = narrow<T>(static_cast<double>(widen(diff_dst[i])) * factor);
    });
  }
};

namespace {

Channels channels(const Shape& x, bool channels_last) {
  if (channels_last) return {x[0] * stride_of(x, 1), x[1], 1};
  return {x[0], x[1], stride_of(x, 1)};
}

Channels channels(const Call& call) { return channels(call.inputs[0].shape(), call.channels_last); }

}  // namespace

std::size_t batch_norm_workspace(const Shape& x, bool channels_last) {
  const Channels of = channels(x, channels_last);
  return of.innermost() ? of.columns().workspace() : 0;
}

void cuda_moments(const Call& call) {
  const Channels of = channels(call);
  const double epsilon = op_cast<Moments>(call.op).options().epsilon;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    const auto x = call.inputs[0].in<T>();
    const auto mean = call.outputs[0].out<S>();
    const auto variance = call.outputs[1].out<S>();
    const auto inverse = call.outputs[2].out<S>();
    if (!of.innermost()) {
      enqueue(call, blocks_of_sums(of.channels), MomentsKernel<T>{x, mean, variance, inverse, of, epsilon});
      return;
    }
    const Columns columns = of.columns();
    const auto sums = enqueue_column_sums(call, columns, MomentsTerms<T>{x});
    enqueue(call, blocks_for(of.channels),
            MomentsOfSumsKernel<T>{x, sums, mean, variance, inverse, columns, epsilon});
  });
}

void cuda_moments_grad(const Call& call) {
  const Channels of = channels(call);
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    enqueue(
        call, blocks_for(call.outputs[0].elements()),
        MomentsGradKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<S>(), call.inputs[2].in<S>(),
                             call.inputs[3].in<S>(), call.inputs[4].in<S>(), call.outputs[0].out<T>(), of});
  });
}

void cuda_normalise(const Call& call) {
  const Channels of = channels(call);
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    enqueue(call, blocks_for(call.outputs[0].elements()),
            NormaliseKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<S>(), call.inputs[2].in<S>(),
                               call.inputs[3].in<S>(), call.inputs[4].in<S>(), call.outputs[0].out<T>(), of});
  });
}

void cuda_normalise_grad(const Call& call) {
  const Channels of = channels(call);
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    const auto scale = call.inputs[1].in<S>();
    const auto inverse = call.inputs[3].in<S>();
    const auto grad = call.inputs[4].in<T>();
    const NormaliseGradTerms<T> terms{call.inputs[0].in<T>(), call.inputs[2].in<S>(), grad};
    const ChannelGrads<T> grads{scale,
                                inverse,
                                call.outputs[1].out<S>(),
                                call.outputs[2].out<S>(),
                                call.outputs[3].out<S>(),
                                call.outputs[4].out<S>()};
    if (of.innermost()) {
      const Columns columns = of.columns();
      const auto sums = enqueue_column_sums(call, columns, terms);
      enqueue(call, blocks_for(of.channels), NormaliseGradOfSumsKernel<T>{sums, grads, columns});
    } else {
      enqueue(call, blocks_of_sums(of.channels), NormaliseGradKernel<T>{terms, grads, of});
    }
    if (call.outputs[0].address != nullptr)
      enqueue(call, blocks_for(call.outputs[0].elements()),
              NormaliseInputGradKernel<T>{scale, inverse, grad, call.outputs[0].out<T>(), of});
  });
}

}  // namespace plexaura::cuda
