// Kernels of elementwise ops without a functor: where, cast, dropout's gradient and normalise_image.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"
#include "core/ops/dropout.h"
#include "core/ops/normalise_image.h"

namespace plexaura::cuda {

template <class T>
struct WhereKernel {
  Global<const bool> condition;
  Global<const T> a;
  Global<const T> b;
  Global<T> dst;
  Strides<3> strides;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t i) {
      dst[i] = condition[strides.template place<0>(i)] ? a[strides.template place<1>(i)]
                                                       : b[strides.template place<2>(i)];
    });
  }
};

template <class From, class To>
struct CastKernel {
  Global<const From> src;
  Global<To> dst;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t i) { dst[i] = convert<To>(src[i]); });
  }
};

template <class T>
struct DropoutGradKernel {
  Global<const T> diff_dst;
  Global<const bool> mask;
  Global<T> diff_src;
  Compute<T> scale;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(diff_src.count(), [&](std::int64_t i) {
      diff_src[i] = narrow<T>(mask[i] ? widen(diff_dst[i]) * scale : Compute<T>(0));
    });
  }
};

// Normalises up to most_channels channels of all samples. One thread computes one pixel.
template <class T>
struct NormaliseImageKernel {
  static constexpr int most_channels = 4;  // largest number of channels of a launch; photos have 3

  Global<const std::uint8_t> src;
  Global<T> dst;
  std::int64_t first;  // number of the first channel
  int count;           // number of channels
  std::int64_t channels;
  std::int64_t pixels;
  std::int64_t pitch;  // distance between pixels in dst if channels are last; 0 if dst is row-major
  std::int64_t zeros;  // number of zeros after the channels of a pixel
  Compute<T> mean[most_channels];
  Compute<T> deviation[most_channels];

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(src.count() / channels, [&](std::int64_t i) {
      for (int c = 0; c < count; ++c) {
        const std::int64_t place = (i / pixels * channels + first + c) * pixels + i % pixels;
        dst[pitch > 0 ? i * pitch + first + c : place] =
            narrow<T>((Compute<T>(src[place]) / 255 - mean[c]) / deviation[c]);
      }
      for (std::int64_t k = 1; k <= zeros; ++k) dst[(i + 1) * pitch - k] = narrow<T>(Compute<T>(0));
    });
  }
};

void cuda_where(const Call& call) {
  const View& result = call.outputs[0];
  const auto strides = broadcast_strides(result.shape(), call.inputs[0].shape(), call.inputs[1].shape(),
                                         call.inputs[2].shape());
  dispatch_size(result.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(result.elements()),
            WhereKernel<T>{call.inputs[0].in<bool>(), call.inputs[1].in<T>(), call.inputs[2].in<T>(),
                           result.out<T>(), strides});
  });
}

void cuda_cast(const Call& call) {
  const View& result = call.outputs[0];
  dispatch(call.inputs[0].dtype(), [&]<class From>(std::type_identity<From>) {
    dispatch(result.dtype(), [&]<class To>(std::type_identity<To>) {
      enqueue(call, blocks_for(result.elements()),
              CastKernel<From, To>{call.inputs[0].in<From>(), result.out<To>()});
    });
  });
}

void cuda_dropout_grad(const Call& call) {
  const View& result = call.outputs[0];
  const double scale = 1 / (1 - op_cast<DropoutGrad>(call.op).options().p);
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(result.elements()),
            DropoutGradKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<bool>(), result.out<T>(),
                                 static_cast<Compute<T>>(scale)});
  });
}

void cuda_normalise_image(const Call& call) {
  const View& images = call.inputs[0];
  const View& result = call.outputs[0];
  if (images.elements() == 0) return;
  const auto& op = op_cast<NormaliseImage>(call.op);
  const std::int64_t channels = images.shape()[1];
  const std::int64_t pixels = stride_of(images.shape(), 1);
  const std::int64_t pitch = call.channels_last ? result.shape()[1] : 0;
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    using Kernel = NormaliseImageKernel<T>;
    for (std::int64_t first = 0; first < channels; first += Kernel::most_channels) {
      const std::int64_t count = std::min<std::int64_t>(Kernel::most_channels, channels - first);
      const bool is_last = pitch > 0 && first + count == channels;
      Kernel kernel{images.in<std::uint8_t>(),
                    result.out<T>(),
                    first,
                    static_cast<int>(count),
                    channels,
                    pixels,
                    pitch,
                    is_last ? pitch - channels : 0,
                    {},
                    {}};
      for (int c = 0; c < kernel.count; ++c) {
        kernel.mean[c] = static_cast<Compute<T>>(op.mean(first + c));
        kernel.deviation[c] = static_cast<Compute<T>>(op.stddev(first + c));
      }
      enqueue(call, blocks_for(images.elements() / channels), kernel);
    }
  });
}

}  // namespace plexaura::cuda
