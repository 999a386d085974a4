// Kernels of elementwise ops without a functor: where, cast, dropout's gradient and normalise_image.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/several.h"
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
  bool is_wide;
  Strides<3> strides;

  static constexpr int width = elements_at_once<T>;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    each_group<width>(block, dst.count(), is_wide, [&]<int count>(std::int64_t first, Width<count>) {
      const Several<bool, count> chosen = strides.template group<0, count>(condition, first);
      const Several<T, count> x = strides.template group<1, count>(a, first);
      const Several<T, count> y = strides.template group<2, count>(b, first);
      Several<T, count> z;
      for (int k = 0; k < count; ++k) z[k] = chosen[k] ? x[k] : y[k];
      dst.set_several(first, z);
    });
  }
};

template <class From, class To>
struct CastKernel {
  Global<const From> src;
  Global<To> dst;
  bool is_wide;

  static constexpr int width = elements_at_once<From, To>;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    each_group<width>(block, dst.count(), is_wide, [&]<int count>(std::int64_t first, Width<count>) {
      const auto x = src.template several<count>(first);
      Several<To, count> y;
      for (int k = 0; k < count; ++k) y[k] = convert<To>(x[k]);
      dst.set_several(first, y);
    });
  }
};

template <class T>
struct DropoutGradKernel {
  Global<const T> diff_dst;
  Global<const bool> mask;
  Global<T> diff_src;
  Compute<T> scale;
  bool is_wide;

  static constexpr int width = elements_at_once<T>;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    each_group<width>(block, diff_src.count(), is_wide, [&]<int count>(std::int64_t first, Width<count>) {
      const auto grad = diff_dst.template several<count>(first);
      const auto passes = mask.template several<count>(first);
      Several<T, count> result;
      for (int k = 0; k < count; ++k)
        result[k] = narrow<T>(passes[k] ? widen(grad[k]) * scale : Compute<T>(0));
      diff_src.set_several(first, result);
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
    using Kernel = WhereKernel<T>;
    const bool is_wide = are_aligned(call.inputs[0], call.inputs[1], call.inputs[2], result) &&
                         strides.has_groups_of(Kernel::width);
    enqueue(call, blocks_for_groups(result.elements(), Kernel::width, is_wide),
            Kernel{call.inputs[0].in<bool>(), call.inputs[1].in<T>(), call.inputs[2].in<T>(), result.out<T>(),
                   is_wide, strides});
  });
}

void cuda_cast(const Call& call) {
  const View& result = call.outputs[0];
  dispatch(call.inputs[0].dtype(), [&]<class From>(std::type_identity<From>) {
    dispatch(result.dtype(), [&]<class To>(std::type_identity<To>) {
      using Kernel = CastKernel<From, To>;
      const bool is_wide = are_aligned(call.inputs[0], result);
      enqueue(call, blocks_for_groups(result.elements(), Kernel::width, is_wide),
              Kernel{call.inputs[0].in<From>(), result.out<To>(), is_wide});
    });
  });
}

void cuda_dropout_grad(const Call& call) {
  const View& result = call.outputs[0];
  const double scale = 1 / (1 - op_cast<DropoutGrad>(call.op).options().p);
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    using Kernel = DropoutGradKernel<T>;
    const bool is_wide = are_aligned(call.inputs[0], call.inputs[1], result);
    enqueue(call, blocks_for_groups(result.elements(), Kernel::width, is_wide),
            Kernel{call.inputs[0].in<T>(), call.inputs[1].in<bool>(), result.out<T>(),
                   static_cast<Compute<T>>(scale), is_wide});
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
