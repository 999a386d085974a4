// The two ops of batch norm, and their gradients.

#include "backends/cuda/kernels/batch_norm.h"
#include "backends/cuda/kernels/kernels.h"
#include "core/ops/batch_norm.h"

namespace plexaura::cuda {

template <class T>
struct MomentsGradTerms {
  Global<const T> src;
  MomentsGrad<T> grad;
  Global<T> diff_src;
  Channels of;

  struct OfChannel {
    const MomentsGradTerms& terms;
    typename MomentsGrad<T>::OfChannel grad;

    PLEXAURA_DEVICE T read(std::int64_t place) const { return terms.src[place]; }
    PLEXAURA_DEVICE void operator()(std::int64_t place, T x) const { terms.diff_src[place] = grad(x); }
  };

  PLEXAURA_DEVICE OfChannel of_channel(std::int64_t c) const {
    return {*this, grad.of_channel(c, static_cast<double>(of.count()))};
  }
};

template <class T>
struct NormaliseTerms {
  Global<const T> src;
  Normal<T> normal;
  Global<T> dst;

  struct OfChannel {
    const NormaliseTerms& terms;
    typename Normal<T>::OfChannel normal;

    PLEXAURA_DEVICE T read(std::int64_t place) const { return terms.src[place]; }
    PLEXAURA_DEVICE void operator()(std::int64_t place, T x) const { terms.dst[place] = normal(x); }
  };

  PLEXAURA_DEVICE OfChannel of_channel(std::int64_t c) const { return {*this, normal.of_channel(c)}; }
};

template <class T>
struct NormaliseInputGradTerms {
  NormalGrad<T> normal;
  Global<const T> diff_dst;
  Global<T> diff_src;

  struct OfChannel {
    const NormaliseInputGradTerms& terms;
    typename NormalGrad<T>::OfX of_x;

    PLEXAURA_DEVICE T read(std::int64_t place) const { return terms.diff_dst[place]; }
    PLEXAURA_DEVICE void operator()(std::int64_t place, T grad) const { terms.diff_src[place] = of_x(grad); }
  };

  PLEXAURA_DEVICE OfChannel of_channel(std::int64_t c) const { return {*this, normal.of_x(c)}; }
};

namespace {

Channels channels(const Call& call) { return {call.inputs[0].shape(), call.channels_last}; }

}  // namespace

std::size_t channel_sums_workspace(const Shape& x, bool channels_last) {
  return static_cast<std::size_t>(ChannelSums::count({x, channels_last})) * sizeof(double);
}

void cuda_moments(const Call& call) {
  const double epsilon = op_cast<Moments>(call.op).options().epsilon;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    const Channels of = channels(call);
    enqueue_channel_sums(call, of,
                         MomentsTerms<T>{call.inputs[0].in<T>(), call.outputs[0].out<S>(),
                                         call.outputs[1].out<S>(), call.outputs[2].out<S>(), epsilon, of});
  });
}

void cuda_moments_grad(const Call& call) {
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    const Channels of = channels(call);
    const MomentsGrad<T> grad{call.inputs[1].in<S>(), call.inputs[2].in<S>(), call.inputs[3].in<S>(),
                              call.inputs[4].in<S>()};
    enqueue_by_channel(call, of,
                       MomentsGradTerms<T>{call.inputs[0].in<T>(), grad, call.outputs[0].out<T>(), of});
  });
}

void cuda_normalise(const Call& call) {
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    const Normal<T> normal{call.inputs[1].in<S>(), call.inputs[2].in<S>(), call.inputs[3].in<S>(),
                           call.inputs[4].in<S>()};
    enqueue_by_channel(call, channels(call),
                       NormaliseTerms<T>{call.inputs[0].in<T>(), normal, call.outputs[0].out<T>()});
  });
}

void cuda_normalise_grad(const Call& call) {
  const Channels of = channels(call);
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    const NormalGrad<T> normal{call.inputs[1].in<S>(), call.inputs[2].in<S>(), call.inputs[3].in<S>()};
    const auto grad = call.inputs[4].in<T>();
    const ChannelGrads<T> grads{call.outputs[1].out<S>(), call.outputs[2].out<S>(), call.outputs[3].out<S>(),
                                call.outputs[4].out<S>()};
    enqueue_channel_sums(call, of,
                         NormaliseGradTerms<T, GivenGrad<T>>{call.inputs[0].in<T>(), normal, {grad}, grads});
    if (call.outputs[0].address != nullptr)
      enqueue_by_channel(call, of, NormaliseInputGradTerms<T>{normal, grad, call.outputs[0].out<T>()});
  });
}

}  // namespace plexaura::cuda
