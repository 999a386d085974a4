// The two ops of batch norm, and their gradients.

#include "backends/cuda/kernels/batch_norm.h"
#include "backends/cuda/kernels/kernels.h"
#include "core/ops/batch_norm.h"

namespace plexaura::cuda {

// Computes each element of `dst` from that of `src` and from the numbers of its channel: values.of_channels()
// returns functions of an element.
template <class T, class Values>
struct EachTerms {
  Global<const T> src;
  Values values;
  Global<T> dst;

  static constexpr int blocks_at_once = 4;

  template <int own>
  PLEXAURA_DEVICE auto of_channels(std::int64_t c) const {
    return values.template of_channels<own>(c);
  }
  template <int width>
  PLEXAURA_DEVICE Several<T, width> read(std::int64_t place) const {
    return src.template several<width>(place);
  }
  template <int width, class Numbers>
  PLEXAURA_DEVICE void apply(std::int64_t place, const Numbers& of, const Several<T, width>& x) const {
    Several<T, width> y;
    for (int k = 0; k < width; ++k) y[k] = of[k](x[k]);
    dst.set_several(place, y);
  }
};

namespace {

Channels channels(const Call& call) { return {*call.inputs[0].type, call.channels_last}; }

}  // namespace

std::size_t channel_sums_workspace(const TensorType& x, bool channels_last) {
  return ChannelSums::bytes({x, channels_last});
}

void cuda_moments(const Call& call) {
  const double epsilon = op_cast<Moments>(call.op).options().epsilon;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    const Channels of = channels(call);
    enqueue_channel_sums<T>(call, of,
                            MomentsTerms<T>{call.inputs[0].in<T>(), call.outputs[0].out<S>(),
                                            call.outputs[1].out<S>(), call.outputs[2].out<S>(), epsilon, of});
  });
}

void cuda_moments_grad(const Call& call) {
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    const Channels of = channels(call);
    const MomentsGrad<T> grad{call.inputs[1].in<S>(), call.inputs[2].in<S>(), call.inputs[3].in<S>(),
                              call.inputs[4].in<S>(), share_of<S>(of)};
    enqueue_by_channel<T>(
        call, of, EachTerms<T, MomentsGrad<T>>{call.inputs[0].in<T>(), grad, call.outputs[0].out<T>()});
  });
}

void cuda_normalise(const Call& call) {
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    const Normal<T> normal{call.inputs[1].in<S>(), call.inputs[2].in<S>(), call.inputs[3].in<S>(),
                           call.inputs[4].in<S>()};
    enqueue_by_channel<T>(call, channels(call),
                          EachTerms<T, Normal<T>>{call.inputs[0].in<T>(), normal, call.outputs[0].out<T>()});
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
    enqueue_channel_sums<T>(
        call, of, NormaliseGradTerms<T, GivenGrad<T>>{call.inputs[0].in<T>(), normal, {grad}, grads});
    if (call.outputs[0].address != nullptr)
      enqueue_by_channel<T>(call, of, EachTerms<T, NormalGrad<T>>{grad, normal, call.outputs[0].out<T>()});
  });
}

}  // namespace plexaura::cuda
