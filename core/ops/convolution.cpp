#include "core/ops/convolution.h"

#include <algorithm>
#include <type_traits>

#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

// The sizes of a convolution, in channels per group, and the products of sizes from which offsets are
// computed. The elements of a kernel are numbered from 0 to kernel() - 1, row by row.
struct Sizes {
  Sizes(const Shape& of_x, const Shape& of_weights, const Shape& of_y, const Conv3dOptions& of)
      : options(of),
        groups(of.groups),
        samples(of_x[0]),
        channels(of_weights[1]),
        outputs(of_weights[0] / of.groups),
        in(pixels_of(of_x)),
        out(pixels_of(of_y)),
        window(pixels_of(of_weights)) {}

  static Size3d pixels_of(const Shape& shape) {
    return shape.rank() == 4 ? with_depth(spatial(shape), 1) : spatial_3d(shape);
  }

  std::int64_t kernel() const { return window.d * window.h * window.w; }
  std::int64_t pixels() const { return in.d * in.h * in.w; }
  std::int64_t places() const { return out.d * out.h * out.w; }

  // Offsets of a channel's first element. `product` is the index of a matrix product, one for each sample and
  // group: n * groups + g.
  std::int64_t x(std::int64_t product, std::int64_t c) const { return (product * channels + c) * pixels(); }
  std::int64_t y(std::int64_t product, std::int64_t o) const { return (product * outputs + o) * places(); }
  std::int64_t weights(std::int64_t g, std::int64_t o) const {
    return (g * outputs + o) * channels * kernel();
  }

  // Returns the position of the kernel's element with this number.
  Size3d element(std::int64_t number) const {
    return {number / (window.h * window.w), number / window.w % window.h, number % window.w};
  }

  // Returns the input plane that the kernel's plane reads for an output plane. from_h() does the same for
  // rows, and from_w() for columns.
  std::int64_t from_d(std::int64_t place, std::int64_t plane) const {
    return place * options.stride.d - options.padding.d + plane * options.dilation.d;
  }
  std::int64_t from_h(std::int64_t place, std::int64_t row) const {
    return place * options.stride.h - options.padding.h + row * options.dilation.h;
  }
  std::int64_t from_w(std::int64_t place, std::int64_t column) const {
    return place * options.stride.w - options.padding.w + column * options.dilation.w;
  }

  const Conv3dOptions& options;
  std::int64_t groups;
  std::int64_t samples;
  std::int64_t channels;
  std::int64_t outputs;
  Size3d in;
  Size3d out;
  Size3d window;
};

bool is_within(std::int64_t position, std::int64_t extent) { return position >= 0 && position < extent; }

// Calls loop(step). A step of 1 is a constant for the compiler, which then uses vectors.
template <class Loop>
void with_step(std::int64_t step, const Loop& loop) {
  if (step == 1)
    loop(std::integral_constant<std::int64_t, 1>{});
  else
    loop(step);
}

// dst[i] = src[first + i * step] if that index lies in [0, extent), else 0.
template <class T, class Sum>
void gather(const T* src, std::int64_t extent, std::int64_t first, std::int64_t step, std::int64_t count,
            Sum* dst) {
  const std::int64_t begin = std::clamp<std::int64_t>((step - 1 - first) / step, 0, count);
  const std::int64_t end =
      std::clamp<std::int64_t>(first < extent ? (extent - first + step - 1) / step : 0, begin, count);
  std::fill(dst, dst + begin, Sum(0));
  with_step(step, [&](auto of_src) {
    for (std::int64_t i = begin; i < end; ++i) dst[i] = static_cast<Sum>(src[first + i * of_src]);
  });
  std::fill(dst + end, dst + count, Sum(0));
}

// Writes the elements of one channel that an element of the kernel reads for the output places [place, place +
// count).
template <class T, class Sum>
void seen_by(const Sizes& size, const T* channel, Size3d element, std::int64_t place, std::int64_t count,
             Sum* dst) {
  while (count > 0) {
    const std::int64_t column = place % size.out.w;
    const std::int64_t run = std::min(count, size.out.w - column);
    const std::int64_t row = size.from_h(place / size.out.w % size.out.h, element.h);
    const std::int64_t plane = size.from_d(place / (size.out.w * size.out.h), element.d);
    if (is_within(row, size.in.h) && is_within(plane, size.in.d))
      gather(channel + (plane * size.in.h + row) * size.in.w, size.in.w, size.from_w(column, element.w),
             size.options.stride.w, run, dst);
    else
      std::fill(dst, dst + run, Sum(0));
    place += run;
    dst += run;
    count -= run;
  }
}

// Returns the index of the output element for which an element of the kernel, at this offset, reads an input
// position; -1 if there is none.
std::int64_t seen_from(std::int64_t position, std::int64_t offset, std::int64_t stride,
                       std::int64_t outputs) {
  const std::int64_t moved = position - offset;
  if (moved < 0 || moved % stride != 0 || moved / stride >= outputs) return -1;
  return moved / stride;
}

// Writes the gradients of one output channel that an element of the kernel passes to the pixels [pixel, pixel +
// count).
template <class T, class Sum>
void brought_by(const Sizes& size, const T* channel, Size3d element, std::int64_t pixel, std::int64_t count,
                Sum* dst) {
  while (count > 0) {
    const std::int64_t column = pixel % size.in.w;
    const std::int64_t run = std::min(count, size.in.w - column);
    const std::int64_t plane = seen_from(pixel / (size.in.w * size.in.h), size.from_d(0, element.d),
                                         size.options.stride.d, size.out.d);
    const std::int64_t row = seen_from(pixel / size.in.w % size.in.h, size.from_h(0, element.h),
                                       size.options.stride.h, size.out.h);
    std::fill(dst, dst + run, Sum(0));
    if (plane >= 0 && row >= 0) {
      const T* src = channel + (plane * size.out.h + row) * size.out.w;
      const std::int64_t offset = size.from_w(0, element.w);
      const std::int64_t stride = size.options.stride.w;
      const std::int64_t begin = std::max<std::int64_t>(0, (column - offset + stride - 1) / stride);
      const std::int64_t end = std::min(size.out.w, (column + run - offset + stride - 1) / stride);
      with_step(stride, [&](auto step) {
        for (std::int64_t j = begin; j < end; ++j) dst[offset - column + j * step] = static_cast<Sum>(src[j]);
      });
    }
    pixel += run;
    dst += run;
    count -= run;
  }
}

template <class Sum>
AddTile<Sum> tile_of(AddTile<double> add) {
  if constexpr (std::is_same_v<Sum, double>)
    return add;
  else
    return add_tile<Sum>;
}

// Multiplies the weights, [O, C K], by the patches of x, [C K, places], for each sample and group.
template <class T>
void forward(const HostCall& call, const Sizes& size, AddTile<double> add) {
  using Sum = Products<T>;
  const T* src = call.inputs[0].as<T>();
  const T* weights = call.inputs[1].as<T>();
  const T* bias = call.inputs.size() == 3 ? call.inputs[2].as<T>() : nullptr;
  T* dst = call.outputs[0].as<T>();
  gemm<Sum>(
      size.samples * size.groups, size.outputs, size.places(), size.channels * size.kernel(),
      [&](std::int64_t product, std::int64_t o, std::int64_t k, std::int64_t count, Sum* to) {
        const T* row = weights + size.weights(product % size.groups, o) + k;
        for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Sum>(row[i]);
      },
      [&](std::int64_t product, std::int64_t k, std::int64_t place, std::int64_t count, Sum* to) {
        seen_by(size, src + size.x(product, k / size.kernel()), size.element(k % size.kernel()), place, count,
                to);
      },
      [&](std::int64_t product, std::int64_t o, std::int64_t place, std::int64_t count, const Sum* from) {
        const Sum added =
            bias == nullptr ? Sum(0) : static_cast<Sum>(bias[product % size.groups * size.outputs + o]);
        T* to = dst + size.y(product, o) + place;
        for (std::int64_t i = 0; i < count; ++i) to[i] = T(from[i] + added);
      },
      tile_of<Sum>(add));
}

// Multiplies the weights, [C, O K], by the gradients that reach each pixel, [O K, pixels], for each sample and
// group.
template <class T>
void input_grad(const HostCall& call, const Sizes& size, AddTile<double> add) {
  using Sum = Products<T>;
  const T* weights = call.inputs[0].as<T>();
  const T* diff_dst = call.inputs[1].as<T>();
  T* diff_src = call.outputs[0].as<T>();
  gemm<Sum>(
      size.samples * size.groups, size.channels, size.pixels(), size.outputs * size.kernel(),
      [&](std::int64_t product, std::int64_t c, std::int64_t k, std::int64_t count, Sum* to) {
        const std::int64_t kernel = size.kernel();
        std::int64_t element = k % kernel;
        const T* from = weights + size.weights(product % size.groups, k / kernel) + c * kernel;
        for (std::int64_t i = 0; i < count; ++i) {
          to[i] = static_cast<Sum>(from[element]);
          if (++element < kernel) continue;
          element = 0;
          from += size.channels * kernel;
        }
      },
      [&](std::int64_t product, std::int64_t k, std::int64_t pixel, std::int64_t count, Sum* to) {
        brought_by(size, diff_dst + size.y(product, k / size.kernel()), size.element(k % size.kernel()),
                   pixel, count, to);
      },
      [&](std::int64_t product, std::int64_t c, std::int64_t pixel, std::int64_t count, const Sum* from) {
        T* to = diff_src + size.x(product, c) + pixel;
        for (std::int64_t i = 0; i < count; ++i) to[i] = T(from[i]);
      },
      tile_of<Sum>(add));
}

// Multiplies the patches of x, [C K, N places], by the gradient, [N places, O], for each group. The result is
// the weights' gradient, transposed.
template <class T>
void weight_grad(const HostCall& call, const Sizes& size, AddTile<double> add) {
  using Sum = Products<T>;
  const T* src = call.inputs[0].as<T>();
  const T* diff_dst = call.inputs[1].as<T>();
  T* diff_weights = call.outputs[0].as<T>();
  const std::int64_t places = size.places();
  gemm<Sum>(
      size.groups, size.channels * size.kernel(), size.outputs, size.samples * places,
      [&](std::int64_t g, std::int64_t row, std::int64_t k, std::int64_t count, Sum* to) {
        const Size3d element = size.element(row % size.kernel());
        while (count > 0) {
          const std::int64_t run = std::min(count, places - k % places);
          const T* channel = src + size.x(k / places * size.groups + g, row / size.kernel());
          seen_by(size, channel, element, k % places, run, to);
          k += run;
          to += run;
          count -= run;
        }
      },
      [&](std::int64_t g, std::int64_t k, std::int64_t o, std::int64_t count, Sum* to) {
        const T* from = diff_dst + size.y(k / places * size.groups + g, o) + k % places;
        for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<Sum>(from[i * places]);
      },
      [&](std::int64_t g, std::int64_t row, std::int64_t o, std::int64_t count, const Sum* from) {
        for (std::int64_t i = 0; i < count; ++i) diff_weights[size.weights(g, o + i) + row] = T(from[i]);
      },
      tile_of<Sum>(add));
}

}  // namespace

void convolve(const HostCall& call, const Conv3dOptions& options, AddTile<double> add) {
  const HostView& y = call.outputs[0];
  if (y.data == nullptr || y.elements() == 0) return;
  const Sizes size(call.inputs[0].shape(), call.inputs[1].shape(), y.shape(), options);
  dispatch_floating(y.dtype(), [&]<class T>(std::type_identity<T>) { forward<T>(call, size, add); });
}

void convolution_input_grad(const HostCall& call, const Conv3dOptions& options, AddTile<double> add) {
  const HostView& x = call.outputs[0];
  if (x.data == nullptr || x.elements() == 0) return;
  const Sizes size(x.shape(), call.inputs[0].shape(), call.inputs[1].shape(), options);
  dispatch_floating(x.dtype(), [&]<class T>(std::type_identity<T>) { input_grad<T>(call, size, add); });
}

void convolution_weight_grad(const HostCall& call, const Conv3dOptions& options, AddTile<double> add) {
  const HostView& weights = call.outputs[0];
  if (weights.data == nullptr || weights.elements() == 0) return;
  const Sizes size(call.inputs[0].shape(), weights.shape(), call.inputs[1].shape(), options);
  dispatch_floating(weights.dtype(),
                    [&]<class T>(std::type_identity<T>) { weight_grad<T>(call, size, add); });
}

}  // namespace plexaura
