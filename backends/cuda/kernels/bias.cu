#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/several.h"
#include "backends/cuda/kernels/strides.h"

namespace plexaura::cuda {

template <class T>
struct BiasKernel {
  Global<const T> bias;
  Global<const T> images;
  Global<T> sums;  // may be the same memory as `images`
  bool is_wide;
  Strides<1> strides;  // from an element of the images to that of the bias

  static constexpr int width = elements_at_once<T>;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    each_group<width>(block, images.count(), is_wide, [&]<int count>(std::int64_t first, Width<count>) {
      const auto x = images.template several<count>(first);
      const Several<T, count> y = strides.template group<0, count>(bias, first);
      Several<T, count> z;
      for (int k = 0; k < count; ++k) z[k] = narrow<T>(widen(x[k]) + widen(y[k]));
      sums.set_several(first, z);
    });
  }
};

void enqueue_bias(const Call& call) {
  const View& images = call.outputs[0];
  const std::int64_t channels = images.shape()[1];
  const std::int64_t pixels = stride_of(images.shape(), 1);
  Strides<1> strides;
  strides.add_axis(images.shape()[0] * (call.channels_last ? pixels : 1), {0});
  strides.add_axis(channels, {1});
  strides.add_axis(call.channels_last ? 1 : pixels, {0});
  dispatch_floating(images.dtype(), [&]<class T>(std::type_identity<T>) {
    using Kernel = BiasKernel<T>;
    const bool is_wide = are_aligned(call.inputs[0], images) && strides.has_groups_of(Kernel::width);
    enqueue(call, blocks_for_groups(images.elements(), Kernel::width, is_wide),
            Kernel{call.inputs[0].in<T>(), images.in<T>(), images.out<T>(), is_wide, strides});
  });
}

}  // namespace plexaura::cuda
