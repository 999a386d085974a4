// Batch norm in its two ops and their gradients.

#include "backends/cuda/kernels/batch_norm.h"
#include "backends/cuda/kernels/kernels.h"
#include "core/ops/batch_norm.h"

namespace plexaura::cuda {

template <class T>
struct MomentsGradKernel {
  Global<const T> src;
  Global<const Statistic<T>> mean;
  Global<const Statistic<T>> inverse;
  Global<const Statistic<T>> diff_mean;
  Global<const Statistic<T>> diff_inverse;
  Global<T> diff_src;
  Channels of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    const auto count = static_cast<double>(of.count());
    block.each_item(diff_src.count(), [&](std::int64_t i) {
      const std::int64_t c = of.channel_of(i);
      diff_src[i] = moments_grad<T>(src[i], mean[c], inverse[c], diff_mean[c], diff_inverse[c], count);
    });
  }
};

template <class T>
struct NormaliseKernel {
  Global<const T> src;
  Normal<T> normal;
  Global<T> dst;
  Channels of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t i) { dst[i] = normal(src[i], of.channel_of(i)); });
  }
};

template <class T>
struct NormaliseInputGradKernel {
  NormalGrad<T> normal;
  Global<const T> diff_dst;
  Global<T> diff_src;
  Channels of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(diff_src.count(),
                    [&](std::int64_t i) { diff_src[i] = normal.of_x(diff_dst[i], of.channel_of(i)); });
  }
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
    enqueue(call, blocks_for(call.outputs[0].elements()),
            MomentsGradKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<S>(), call.inputs[2].in<S>(),
                                 call.inputs[3].in<S>(), call.inputs[4].in<S>(), call.outputs[0].out<T>(),
                                 channels(call)});
  });
}

void cuda_normalise(const Call& call) {
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    using S = Statistic<T>;
    const Normal<T> normal{call.inputs[1].in<S>(), call.inputs[2].in<S>(), call.inputs[3].in<S>(),
                           call.inputs[4].in<S>()};
    enqueue(call, blocks_for(call.outputs[0].elements()),
            NormaliseKernel<T>{call.inputs[0].in<T>(), normal, call.outputs[0].out<T>(), channels(call)});
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
      enqueue(call, blocks_for(call.outputs[0].elements()),
              NormaliseInputGradKernel<T>{normal, grad, call.outputs[0].out<T>(), of});
  });
}

}  // namespace plexaura::cuda
