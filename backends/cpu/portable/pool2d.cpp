#include "core/ops/pool2d.h"

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

// The part of a window along one axis that lies inside: kernel elements [begin, end), the first of them at
// `from`.
struct Span {
  Span(std::int64_t place, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
       std::int64_t extent) {
    const std::int64_t start = place * stride - padding;
    begin = std::max<std::int64_t>(0, -start);
    end = std::min(kernel, extent - start);
    from = start + begin;
  }
  std::int64_t count() const { return end - begin; }

  std::int64_t begin;
  std::int64_t end;
  std::int64_t from;
};

// The places whose windows see a position along one axis: [begin, end).
struct Viewers {
  Viewers(std::int64_t position, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
          std::int64_t places) {
    const std::int64_t moved = position + padding;
    begin = moved < kernel ? 0 : (moved - kernel) / stride + 1;
    end = std::min(places, moved / stride + 1);
  }

  std::int64_t begin;
  std::int64_t end;
};

// Calls body(plane, i, j, element) for each element of a value [N, C, H, W], planes on several threads.
template <class Body>
void for_each_element(const Shape& shape, std::int64_t cost, const Body& body) {
  const std::int64_t height = shape[2];
  const std::int64_t width = shape[3];
  parallel_for(shape[0] * shape[1], height * width * cost, [&](std::int64_t plane) {
    std::int64_t element = plane * height * width;
    for (std::int64_t i = 0; i < height; ++i)
      for (std::int64_t j = 0; j < width; ++j) body(plane, i, j, element++);
  });
}

struct Window {
  Window(const Window2d& of, const Shape& x, std::int64_t i, std::int64_t j)
      : h(i, of.kernel.h, of.stride.h, of.padding.h, x[2]),
        w(j, of.kernel.w, of.stride.w, of.padding.w, x[3]) {}
  Span h;
  Span w;
};

// Calls body(place of the output element) for each window that sees the pixel.
template <class Body>
void for_each_viewer(const Window2d& window, const Shape& y, std::int64_t i, std::int64_t j,
                     const Body& body) {
  const Viewers rows(i, window.kernel.h, window.stride.h, window.padding.h, y[2]);
  const Viewers columns(j, window.kernel.w, window.stride.w, window.padding.w, y[3]);
  for (std::int64_t oi = rows.begin; oi < rows.end; ++oi)
    for (std::int64_t oj = columns.begin; oj < columns.end; ++oj) body(oi, oj);
}

template <class T>
void max_pool(const HostCall& call, const Window2d& window) {
  const Shape& x = call.inputs[0].shape();
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  auto* index = call.outputs[1].as<std::uint8_t>();
  for_each_element(call.outputs[0].shape(), window.kernel.h * window.kernel.w,
                   [&](auto plane, auto i, auto j, auto element) {
                     const Window inside(window, x, i, j);
                     const T* corner = src + (plane * x[2] + inside.h.from) * x[3] + inside.w.from;
                     T largest = *corner;
                     std::int64_t place = inside.h.begin * window.kernel.w + inside.w.begin;
                     for (std::int64_t a = 0; a < inside.h.count(); ++a)
                       for (std::int64_t b = 0; b < inside.w.count(); ++b) {
                         const T value = corner[a * x[3] + b];
                         const bool is_first_nan = is_nan(value) && !is_nan(largest);
                         if (!(value > largest) && !is_first_nan) continue;
                         largest = value;
                         place = (inside.h.begin + a) * window.kernel.w + inside.w.begin + b;
                       }
                     if (dst != nullptr) dst[element] = largest;
                     if (index != nullptr) index[element] = static_cast<std::uint8_t>(place);
                   });
}

template <class T>
void max_pool_grad(const HostCall& call, const Window2d& window) {
  const Shape& y = call.inputs[0].shape();
  const T* diff_dst = call.inputs[0].as<T>();
  const auto* index = call.inputs[1].as<std::uint8_t>();
  T* diff_src = call.outputs[0].as<T>();
  for_each_element(call.outputs[0].shape(), window.kernel.h * window.kernel.w,
                   [&](auto plane, auto i, auto j, auto element) {
                     Compute<T> sum = 0;
                     for_each_viewer(window, y, i, j, [&](std::int64_t oi, std::int64_t oj) {
                       const std::int64_t a = i + window.padding.h - oi * window.stride.h;
                       const std::int64_t b = j + window.padding.w - oj * window.stride.w;
                       const std::int64_t from = (plane * y[2] + oi) * y[3] + oj;
                       if (index[from] == a * window.kernel.w + b)
                         sum += static_cast<Compute<T>>(diff_dst[from]);
                     });
                     diff_src[element] = T(sum);
                   });
}

template <class T>
void max_pool_gather(const HostCall& call, const Window2d& window) {
  const Shape& x = call.inputs[0].shape();
  const T* src = call.inputs[0].as<T>();
  const auto* index = call.inputs[1].as<std::uint8_t>();
  T* dst = call.outputs[0].as<T>();
  for_each_element(call.outputs[0].shape(), 4, [&](auto plane, auto i, auto j, auto element) {
    const std::int64_t row = i * window.stride.h - window.padding.h + index[element] / window.kernel.w;
    const std::int64_t column = j * window.stride.w - window.padding.w + index[element] % window.kernel.w;
    dst[element] = src[(plane * x[2] + row) * x[3] + column];
  });
}

double divisor(const Window2d& window, const Window& inside, bool count_include_pad) {
  const std::int64_t count =
      count_include_pad ? window.kernel.h * window.kernel.w : inside.h.count() * inside.w.count();
  return static_cast<double>(count);
}

template <class T>
void avg_pool(const HostCall& call, const Window2d& window, bool count_include_pad) {
  const Shape& x = call.inputs[0].shape();
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  for_each_element(call.outputs[0].shape(), window.kernel.h * window.kernel.w,
                   [&](auto plane, auto i, auto j, auto element) {
                     const Window inside(window, x, i, j);
                     const T* corner = src + (plane * x[2] + inside.h.from) * x[3] + inside.w.from;
                     double sum = 0;
                     for (std::int64_t a = 0; a < inside.h.count(); ++a)
                       for (std::int64_t b = 0; b < inside.w.count(); ++b)
                         sum += static_cast<double>(corner[a * x[3] + b]);
                     dst[element] = T(sum / divisor(window, inside, count_include_pad));
                   });
}

template <class T>
void avg_pool_grad(const HostCall& call, const Window2d& window, bool count_include_pad) {
  const Shape& x = call.outputs[0].shape();
  const Shape& y = call.inputs[0].shape();
  const T* diff_dst = call.inputs[0].as<T>();
  T* diff_src = call.outputs[0].as<T>();
  for_each_element(x, window.kernel.h * window.kernel.w, [&](auto plane, auto i, auto j, auto element) {
    double sum = 0;
    for_each_viewer(window, y, i, j, [&](std::int64_t oi, std::int64_t oj) {
      const Window inside(window, x, oi, oj);
      sum += static_cast<double>(diff_dst[(plane * y[2] + oi) * y[3] + oj]) /
             divisor(window, inside, count_include_pad);
    });
    diff_src[element] = T(sum);
  });
}

}  // namespace

void portable_max_pool2d(const HostCall& call) {
  const Window2d& window = op_cast<PoolOp>(call.op).window();
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { max_pool<T>(call, window); });
}

void portable_max_pool2d_grad(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  const Window2d& window = op_cast<PoolOp>(call.op).window();
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { max_pool_grad<T>(call, window); });
}

void portable_max_pool2d_gather(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  const Window2d& window = op_cast<PoolOp>(call.op).window();
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { max_pool_gather<T>(call, window); });
}

void portable_avg_pool2d(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  const auto& op = op_cast<AvgPool2d>(call.op);
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    avg_pool<T>(call, op.window(), op.options().count_include_pad);
  });
}

void portable_avg_pool2d_grad(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  const auto& op = op_cast<AvgPool2dGrad>(call.op);
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    avg_pool_grad<T>(call, op.window(), op.options().count_include_pad);
  });
}

}  // namespace plexaura
