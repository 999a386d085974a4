#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"

namespace plexaura::cuda {

template <class T>
struct BiasKernel {
  Global<const T> bias;
  Global<const T> images;
  Global<T> sums;       // may be the same memory as `images`
  std::int64_t pixels;  // number of consecutive elements of one channel

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(images.count(), [&](std::int64_t i) {
      const std::int64_t plane = quotient(i, pixels);
      const std::int64_t channel = plane - quotient(plane, bias.count()) * bias.count();
      sums[i] = narrow<T>(widen(images[i]) + widen(bias[channel]));
    });
  }
};

void enqueue_bias(const Call& call) {
  const View& images = call.outputs[0];
  dispatch_floating(images.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(images.elements()),
            BiasKernel<T>{call.inputs[0].in<T>(), images.in<T>(), images.out<T>(),
                          call.channels_last ? 1 : stride_of(images.shape(), 1)});
  });
}

}  // namespace plexaura::cuda
