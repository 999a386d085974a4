// Pooling and its gradients. One thread computes one element. A gradient's thread reads all windows that
// contain its element, so that the order of additions is the same in every run.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"
#include "core/ops/pool2d.h"

namespace plexaura::cuda {

// A range [begin, end) of a window's elements along one axis, or of windows.
struct Span {
  std::int64_t begin;
  std::int64_t end;
};

// The sizes of pooling along H or W.
struct PoolAxis {
  std::int64_t input;
  std::int64_t output;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;

  PLEXAURA_DEVICE std::int64_t start(std::int64_t place) const { return place * stride - padding; }
  // Returns the elements of a window that lie inside the image. `place` is the number of the window.
  PLEXAURA_DEVICE Span inside(std::int64_t place) const {
    const std::int64_t first = start(place);
    const std::int64_t room = input - first;
    return {first < 0 ? -first : 0, kernel < room ? kernel : room};
  }
  // Returns the windows that contain a position.
  PLEXAURA_DEVICE Span viewers(std::int64_t position) const {
    const std::int64_t moved = position + padding;
    const std::int64_t behind = moved / stride + 1;
    return {moved < kernel ? 0 : (moved - kernel) / stride + 1, behind < output ? behind : output};
  }
};

// The indices of an element in a value [planes, rows, columns, channels].
struct Pixel {
  PLEXAURA_DEVICE Pixel(std::int64_t element, std::int64_t rows, std::int64_t columns,
                        std::int64_t channels) {
    const std::int64_t place = element / channels;
    const std::int64_t line = place / columns;
    channel = element - place * channels;
    column = place - line * columns;
    plane = line / rows;
    row = line - plane * rows;
  }
  std::int64_t plane;
  std::int64_t row;
  std::int64_t column;
  std::int64_t channel;
};

// Values as [planes, H, W, channels]. With channels last the planes are the samples. Otherwise the planes are
// the channels of all samples, and the last axis has size 1.
struct Pool {
  PoolAxis h;
  PoolAxis w;
  std::int64_t channels;

  PLEXAURA_DEVICE Pixel of_x(std::int64_t element) const { return {element, h.input, w.input, channels}; }
  PLEXAURA_DEVICE Pixel of_y(std::int64_t element) const { return {element, h.output, w.output, channels}; }
  // Return the index of a pixel in the same plane and channel, in the value x and in the pooled value.
  PLEXAURA_DEVICE std::int64_t x(const Pixel& at, std::int64_t row, std::int64_t column) const {
    return ((at.plane * h.input + row) * w.input + column) * channels + at.channel;
  }
  PLEXAURA_DEVICE std::int64_t y(const Pixel& at, std::int64_t i, std::int64_t j) const {
    return ((at.plane * h.output + i) * w.output + j) * channels + at.channel;
  }
};

template <class T>
struct MaxPoolKernel {
  Global<const T> src;
  Global<T> dst;
  Global<std::uint8_t> index;
  std::int64_t count;
  Pool of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(count, [&](std::int64_t element) {
      const Pixel at = of.of_y(element);
      const Span rows = of.h.inside(at.row);
      const Span columns = of.w.inside(at.column);
      std::int64_t place = -1;
      T largest = T();
      for (std::int64_t a = rows.begin; a < rows.end; ++a)
        for (std::int64_t b = columns.begin; b < columns.end; ++b) {
          const T value = src[of.x(at, of.h.start(at.row) + a, of.w.start(at.column) + b)];
          const bool is_first_nan = is_nan(value) && !is_nan(largest);
          if (place >= 0 && !(widen(value) > widen(largest)) && !is_first_nan) continue;
          largest = value;
          place = a * of.w.kernel + b;
        }
      if (dst) dst[element] = largest;
      if (index) index[element] = static_cast<std::uint8_t>(place);
    });
  }
};

template <class T>
struct MaxPoolGradKernel {
  Global<const T> diff_dst;
  Global<const std::uint8_t> index;
  Global<T> diff_src;
  Pool of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(diff_src.count(), [&](std::int64_t element) {
      const Pixel at = of.of_x(element);
      const Span rows = of.h.viewers(at.row);
      const Span columns = of.w.viewers(at.column);
      Compute<T> sum = 0;
      for (std::int64_t i = rows.begin; i < rows.end; ++i)
        for (std::int64_t j = columns.begin; j < columns.end; ++j) {
          const std::int64_t own = (at.row - of.h.start(i)) * of.w.kernel + at.column - of.w.start(j);
          const std::int64_t viewer = of.y(at, i, j);
          if (index[viewer] == own) sum += widen(diff_dst[viewer]);
        }
      diff_src[element] = narrow<T>(sum);
    });
  }
};

template <class T>
struct MaxPoolGatherKernel {
  Global<const T> src;
  Global<const std::uint8_t> index;
  Global<T> dst;
  Pool of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t element) {
      const Pixel at = of.of_y(element);
      const std::int64_t number = index[element];
      const std::int64_t in_row = number / of.w.kernel;
      const std::int64_t row = of.h.start(at.row) + in_row;
      const std::int64_t column = of.w.start(at.column) + number - in_row * of.w.kernel;
      dst[element] = src[of.x(at, row, column)];
    });
  }
};

PLEXAURA_DEVICE inline double divisor(const Pool& of, Span rows, Span columns, bool count_include_pad) {
  return static_cast<double>(count_include_pad ? of.h.kernel * of.w.kernel
                                               : (rows.end - rows.begin) * (columns.end - columns.begin));
}

template <class T>
struct AvgPoolKernel {
  Global<const T> src;
  Global<T> dst;
  Pool of;
  bool count_include_pad;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t element) {
      const Pixel at = of.of_y(element);
      const Span rows = of.h.inside(at.row);
      const Span columns = of.w.inside(at.column);
      double sum = 0;
      for (std::int64_t a = rows.begin; a < rows.end; ++a)
        for (std::int64_t b = columns.begin; b < columns.end; ++b)
          sum += widen(src[of.x(at, of.h.start(at.row) + a, of.w.start(at.column) + b)]);
      dst[element] = narrow<T>(sum / divisor(of, rows, columns, count_include_pad));
    });
  }
};

template <class T>
struct AvgPoolGradKernel {
  Global<const T> diff_dst;
  Global<T> diff_src;
  Pool of;
  bool count_include_pad;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(diff_src.count(), [&](std::int64_t element) {
      const Pixel at = of.of_x(element);
      const Span rows = of.h.viewers(at.row);
      const Span columns = of.w.viewers(at.column);
      double sum = 0;
      for (std::int64_t i = rows.begin; i < rows.end; ++i)
        for (std::int64_t j = columns.begin; j < columns.end; ++j)
          sum += widen(diff_dst[of.y(at, i, j)]) /
                 divisor(of, of.h.inside(i), of.w.inside(j), count_include_pad);
      diff_src[element] = narrow<T>(sum);
    });
  }
};

namespace {

Pool pool(const Call& call, const Window2d& window, const Shape& x, const Shape& y) {
  return {{x[2], y[2], window.kernel.h, window.stride.h, window.padding.h},
          {x[3], y[3], window.kernel.w, window.stride.w, window.padding.w},
          call.channels_last ? x[1] : 1};
}

}  // namespace

void cuda_max_pool2d(const Call& call) {
  const View& x = call.inputs[0];
  const View& y = call.outputs[0];
  const Pool of = pool(call, op_cast<PoolOp>(call.op).window(), x.shape(), y.shape());
  dispatch_floating(x.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(y.elements()),
            MaxPoolKernel<T>{x.in<T>(), y.out<T>(), call.outputs[1].out<std::uint8_t>(), y.elements(), of});
  });
}

void cuda_max_pool2d_grad(const Call& call) {
  const View& y = call.inputs[0];
  const View& x = call.outputs[0];
  const Pool of = pool(call, op_cast<PoolOp>(call.op).window(), x.shape(), y.shape());
  dispatch_floating(x.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(x.elements()),
            MaxPoolGradKernel<T>{y.in<T>(), call.inputs[1].in<std::uint8_t>(), x.out<T>(), of});
  });
}

void cuda_max_pool2d_gather(const Call& call) {
  const View& x = call.inputs[0];
  const View& y = call.outputs[0];
  const Pool of = pool(call, op_cast<PoolOp>(call.op).window(), x.shape(), y.shape());
  dispatch_floating(x.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(y.elements()),
            MaxPoolGatherKernel<T>{x.in<T>(), call.inputs[1].in<std::uint8_t>(), y.out<T>(), of});
  });
}

void cuda_avg_pool2d(const Call& call) {
  const auto& op = op_cast<AvgPool2dOp>(call.op);
  const View& x = call.inputs[0];
  const View& y = call.outputs[0];
  dispatch_floating(x.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(y.elements()),
            AvgPoolKernel<T>{x.in<T>(), y.out<T>(), pool(call, op.window(), x.shape(), y.shape()),
                             op.options().count_include_pad});
  });
}

void cuda_avg_pool2d_grad(const Call& call) {
  const auto& op = op_cast<AvgPool2dGrad>(call.op);
  const View& y = call.inputs[0];
  const View& x = call.outputs[0];
  dispatch_floating(x.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(x.elements()),
            AvgPoolGradKernel<T>{y.in<T>(), x.out<T>(), pool(call, op.window(), x.shape(), y.shape()),
                                 op.options().count_include_pad});
  });
}

}  // namespace plexaura::cuda
