// Convolution and its gradients, computed from their definitions. They are correct for every type and size,
// but slow. One thread computes one element of the result. For the gradient of the weights, one block
// computes one element.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/joins.h"
#include "backends/cuda/kernels/kernels.h"
#include "core/ops/conv2d.h"

namespace plexaura::cuda {

// The sizes of a convolution along H or W.
struct ConvolutionAxis {
  std::int64_t input;
  std::int64_t output;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;
  std::int64_t dilation;

  // Returns the position of the input that an element of the kernel reads for a place of the output.
  PLEXAURA_DEVICE std::int64_t seen(std::int64_t place, std::int64_t element) const {
    return place * stride - padding + element * dilation;
  }
  // Returns the place of the output for which an element of the kernel reads this position. Returns -1 if
  // there is none.
  PLEXAURA_DEVICE std::int64_t viewer(std::int64_t position, std::int64_t element) const {
    const std::int64_t moved = position + padding - element * dilation;
    return moved < 0 || moved % stride != 0 || moved / stride >= output ? -1 : moved / stride;
  }
};

struct Convolution {
  std::int64_t samples;
  std::int64_t groups;
  std::int64_t channels;  // number of channels of x in a group
  std::int64_t outputs;   // number of channels of y in a group
  ConvolutionAxis h;
  ConvolutionAxis w;

  PLEXAURA_DEVICE std::int64_t x(std::int64_t n, std::int64_t c, std::int64_t row,
                                 std::int64_t column) const {
    return ((n * groups * channels + c) * h.input + row) * w.input + column;
  }
  PLEXAURA_DEVICE std::int64_t y(std::int64_t n, std::int64_t o, std::int64_t i, std::int64_t j) const {
    return ((n * groups * outputs + o) * h.output + i) * w.output + j;
  }
  PLEXAURA_DEVICE std::int64_t weight(std::int64_t o, std::int64_t c, std::int64_t a, std::int64_t b) const {
    return ((o * channels + c) * h.kernel + a) * w.kernel + b;
  }
};

template <class T>
PLEXAURA_DEVICE inline Products<T> product(T a, T b) {
  return static_cast<Products<T>>(widen(a)) * static_cast<Products<T>>(widen(b));
}

template <class T>
struct ConvolutionKernel {
  Global<const T> src;
  Global<const T> weights;
  Global<const T> bias;  // null: there is no bias
  Global<T> dst;
  Convolution of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t element) {
      const std::int64_t j = element % of.w.output;
      const std::int64_t i = element / of.w.output % of.h.output;
      const std::int64_t o = element / (of.w.output * of.h.output) % (of.groups * of.outputs);
      const std::int64_t n = element / (of.w.output * of.h.output * of.groups * of.outputs);
      const std::int64_t first = o / of.outputs * of.channels;
      Products<T> sum = bias ? static_cast<Products<T>>(widen(bias[o])) : Products<T>(0);
      for (std::int64_t a = 0; a < of.h.kernel; ++a) {
        const std::int64_t row = of.h.seen(i, a);
        if (row < 0 || row >= of.h.input) continue;
        for (std::int64_t b = 0; b < of.w.kernel; ++b) {
          const std::int64_t column = of.w.seen(j, b);
          if (column < 0 || column >= of.w.input) continue;
          for (std::int64_t c = 0; c < of.channels; ++c)
            sum += product(src[of.x(n, first + c, row, column)], weights[of.weight(o, c, a, b)]);
        }
      }
      dst[element] = narrow<T>(sum);
    });
  }
};

template <class T>
struct InputGradKernel {
  Global<const T> weights;
  Global<const T> diff_dst;
  Global<T> diff_src;
  Convolution of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(diff_src.count(), [&](std::int64_t element) {
      const std::int64_t column = element % of.w.input;
      const std::int64_t row = element / of.w.input % of.h.input;
      const std::int64_t c = element / (of.w.input * of.h.input) % (of.groups * of.channels);
      const std::int64_t n = element / (of.w.input * of.h.input * of.groups * of.channels);
      const std::int64_t first = c / of.channels * of.outputs;
      Products<T> sum = 0;
      for (std::int64_t a = 0; a < of.h.kernel; ++a) {
        const std::int64_t i = of.h.viewer(row, a);
        if (i < 0) continue;
        for (std::int64_t b = 0; b < of.w.kernel; ++b) {
          const std::int64_t j = of.w.viewer(column, b);
          if (j < 0) continue;
          for (std::int64_t o = first; o < first + of.outputs; ++o)
            sum += product(weights[of.weight(o, c % of.channels, a, b)], diff_dst[of.y(n, o, i, j)]);
        }
      }
      diff_src[element] = narrow<T>(sum);
    });
  }
};

template <class T>
struct WeightGradKernel {
  Global<const T> src;
  Global<const T> diff_dst;
  Global<T> diff_weights;
  Convolution of;

  PLEXAURA_DEVICE Products<T> part(std::int64_t element, std::int64_t place) const {
    const std::int64_t b = element % of.w.kernel;
    const std::int64_t a = element / of.w.kernel % of.h.kernel;
    const std::int64_t c = element / (of.w.kernel * of.h.kernel) % of.channels;
    const std::int64_t o = element / (of.w.kernel * of.h.kernel * of.channels);
    const std::int64_t j = place % of.w.output;
    const std::int64_t i = place / of.w.output % of.h.output;
    const std::int64_t n = place / (of.w.output * of.h.output);
    const std::int64_t row = of.h.seen(i, a);
    const std::int64_t column = of.w.seen(j, b);
    if (row < 0 || row >= of.h.input || column < 0 || column >= of.w.input) return 0;
    return product(src[of.x(n, o / of.outputs * of.channels + c, row, column)], diff_dst[of.y(n, o, i, j)]);
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    using Sum = Products<T>;
    PLEXAURA_SHARED(block, Sum, parts, threads);
    const std::int64_t places = of.samples * of.h.output * of.w.output;
    for (std::int64_t element = block.index(); element < diff_weights.count(); element += block.blocks()) {
      sum_all<Sum>(block, parts, places, [&](std::int64_t place) { return part(element, place); });
      block.each_thread([&](int thread) {
        if (thread == 0) diff_weights[element] = narrow<T>(static_cast<Sum>(parts[0]));
      });
    }
  }
};

namespace {

Convolution convolution(const Shape& x, const Shape& weights, const Shape& y, const Conv2dOptions& options) {
  return {x[0],
          options.groups,
          weights[1],
          weights[0] / options.groups,
          {x[2], y[2], weights[2], options.stride.h, options.padding.h, options.dilation.h},
          {x[3], y[3], weights[3], options.stride.w, options.padding.w, options.dilation.w}};
}

}  // namespace

void cuda_conv2d(const Call& call) {
  const View& y = call.outputs[0];
  const Convolution of = convolution(call.inputs[0].shape(), call.inputs[1].shape(), y.shape(),
                                     op_cast<Conv2dOp>(call.op).options());
  dispatch_floating(y.dtype(), [&]<class T>(std::type_identity<T>) {
    const Global<const T> bias =
        call.inputs.size() == 3 ? call.inputs[2].in<T>() : Global<const T>(nullptr, 0);
    enqueue(call, blocks_for(y.elements()),
            ConvolutionKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<T>(), bias, y.out<T>(), of});
  });
}

void cuda_conv2d_input_grad(const Call& call) {
  const View& x = call.outputs[0];
  const Convolution of = convolution(x.shape(), call.inputs[0].shape(), call.inputs[1].shape(),
                                     op_cast<Conv2dInputGrad>(call.op).options());
  dispatch_floating(x.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(x.elements()),
            InputGradKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<T>(), x.out<T>(), of});
  });
}

void cuda_conv2d_weight_grad(const Call& call) {
  const View& weights = call.outputs[0];
  const Convolution of = convolution(call.inputs[0].shape(), weights.shape(), call.inputs[1].shape(),
                                     op_cast<Conv2dWeightGrad>(call.op).options());
  dispatch_floating(weights.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_of_sums(weights.elements()),
            WeightGradKernel<T>{call.inputs[0].in<T>(), call.inputs[1].in<T>(), weights.out<T>(), of});
  });
}

}  // namespace plexaura::cuda
