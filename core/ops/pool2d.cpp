#include "core/ops/pool2d.h"

#include <fmt/format.h>
#include <functional>
#include <numeric>

#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/axes.h"
#include "core/ops/elementwise.h"
#include "core/ops/pool3d.h"
#include "core/ops/reduce.h"

namespace plexaura {

namespace {

template <class Options>
Window2d pool_window(const Options& options) {
  return {options.kernel, options.stride.value_or(options.kernel), options.padding, {}};
}

MaxPool2dOptions max_options(const Window2d& window) {
  return {window.kernel, window.stride, window.padding};
}

AvgPool2dOptions avg_options(const Window2d& window, bool count_include_pad) {
  return {window.kernel, window.stride, window.padding, count_include_pad};
}

void require_window(const Window2d& window) {
  window.check();
  if (2 * window.padding.h > window.kernel.h || 2 * window.padding.w > window.kernel.w)
    throw RuleError("the padding may be at most half the kernel, so that every window sees the input");
}

void require_pixels(Size2d input) {
  if (input.h < 1 || input.w < 1)
    throw RuleError(fmt::format(
        "the image must have a height and a width of 1 or more (here {} x {}): a window over nothing has no "
        "largest element and no mean",
        input.h, input.w));
}

void require_small(const Window2d& window) {
  window.check();
  if (window.kernel.h * window.kernel.w > 255)
    throw RuleError(fmt::format(
        "a window of max_pool2d may have at most 255 elements and {} x {} has more; pool in two steps",
        window.kernel.h, window.kernel.w));
}

void require_index(const TensorType& index, const TensorType& pooled) {
  if (index != TensorType{DType::uint8, pooled.shape})
    throw RuleError(fmt::format("the index must be uint8 of the pooled shape {}: output 1 of max_pool2d",
                                to_string(pooled.shape)));
}

// True if the windows do not end where the padded image ends, so that ceil mode may add one. False for a window that
// the op refuses.
bool leaves_a_rest(const Operand& x, const Window2d& window) {
  if (x.node().shape().rank() != 4) return false;
  try {
    window.check();
  } catch (const RuleError&) {
    return false;
  }
  const Size2d input = spatial(x.node().shape());
  return (input.h + 2 * window.padding.h - window.kernel.h) % window.stride.h != 0 ||
         (input.w + 2 * window.padding.w - window.kernel.w) % window.stride.w != 0;
}

// Pools an image as a volume of depth 1.
Node of_depth_1(const Operand& x, const std::function<Node(const Node&)>& pool) {
  return squeeze({pool(unsqueeze(x, 2)), x.where()}, {2});
}

void require_rounded_down(std::string_view builder, const Operand& x, bool ceil_mode) {
  require_that(
      !ceil_mode, builder, {x},
      "has no ceil mode; apply MaxPool3dGrad, MaxPool3dGather or AvgPool3dGrad to volumes of depth 1");
}

}  // namespace

TensorType PoolOp::pooled(const TensorType& x) const {
  require_floating(x);
  require_nchw(x);
  require_window(window());
  require_pixels(spatial(x.shape));
  const Size2d out = window().outputs(spatial(x.shape));
  return {x.dtype, Shape{x.shape[0], x.shape[1], out.h, out.w}};
}

TensorType PoolOp::unpooled(const TensorType& y) const {
  require_floating(y);
  require_nchw(y);
  require_window(window());
  require_pixels(options().input);
  const Size2d expected = window().outputs(options().input);
  if (spatial(y.shape) != expected)
    throw RuleError(fmt::format("the gradient must have the height and width of the output, {} x {}",
                                expected.h, expected.w));
  return {y.dtype, Shape{y.shape[0], y.shape[1], options().input.h, options().input.w}};
}

std::vector<TensorType> MaxPool2dOp::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  require_small(window());
  const TensorType y = pooled(inputs[0]);
  return {y, {DType::uint8, y.shape}};
}

std::vector<Node> MaxPool2dOp::vjp(const VjpRequest& request) const {
  const Size2d input = spatial(request.inputs[0].shape());
  return {max_pool2d_grad(request.grad_outputs[0], request.outputs[1], input, max_options(window()))};
}

std::vector<TensorType> MaxPool2dGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_small(window());
  require_index(inputs[1], inputs[0]);
  return {unpooled(inputs[0])};
}

std::vector<Node> MaxPool2dGrad::vjp(const VjpRequest& request) const {
  return {max_pool2d_gather(request.grad_outputs[0], request.inputs[1], max_options(window())), Node()};
}

std::vector<TensorType> MaxPool2dGather::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_small(window());
  const TensorType y = pooled(inputs[0]);
  require_index(inputs[1], y);
  return {y};
}

std::vector<Node> MaxPool2dGather::vjp(const VjpRequest& request) const {
  const Size2d input = spatial(request.inputs[0].shape());
  return {max_pool2d_grad(request.grad_outputs[0], request.inputs[1], input, max_options(window())), Node()};
}

std::vector<TensorType> AvgPool2dOp::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  return {pooled(inputs[0])};
}

std::vector<Node> AvgPool2dOp::vjp(const VjpRequest& request) const {
  const Size2d input = spatial(request.inputs[0].shape());
  return {
      avg_pool2d_grad(request.grad_outputs[0], input, avg_options(window(), options().count_include_pad))};
}

std::vector<TensorType> AvgPool2dGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  return {unpooled(inputs[0])};
}

std::vector<Node> AvgPool2dGrad::vjp(const VjpRequest& request) const {
  return {avg_pool2d(request.grad_outputs[0], avg_options(window(), options().count_include_pad))};
}

Node max_pool2d(Operand x, MaxPool2dOptions options) {
  if (options.ceil_mode && leaves_a_rest(x, pool_window(options)))
    return of_depth_1(x, [&](const Node& volume) {
      return max_pool3d({volume, x.where()}, {.kernel = with_depth(options.kernel, 1),
                                              .stride = with_depth(pool_window(options).stride, 1),
                                              .padding = with_depth(options.padding, 0),
                                              .ceil_mode = true});
    });
  return apply(std::make_shared<MaxPool2dOp>(PoolOptions{pool_window(options)}), {x});
}

Node max_pool2d_grad(Operand grad_out, Operand index, Size2d input, MaxPool2dOptions options) {
  require_rounded_down("max_pool2d_grad", grad_out, options.ceil_mode);
  return apply(std::make_shared<MaxPool2dGrad>(PoolOptions{pool_window(options), input}), {grad_out, index});
}

Node max_pool2d_gather(Operand x, Operand index, MaxPool2dOptions options) {
  require_rounded_down("max_pool2d_gather", x, options.ceil_mode);
  return apply(std::make_shared<MaxPool2dGather>(PoolOptions{pool_window(options)}), {x, index});
}

Node avg_pool2d(Operand x, AvgPool2dOptions options) {
  if (options.ceil_mode && leaves_a_rest(x, pool_window(options)))
    return of_depth_1(x, [&](const Node& volume) {
      return avg_pool3d({volume, x.where()}, {.kernel = with_depth(options.kernel, 1),
                                              .stride = with_depth(pool_window(options).stride, 1),
                                              .padding = with_depth(options.padding, 0),
                                              .count_include_pad = options.count_include_pad,
                                              .ceil_mode = true});
    });
  return apply(
      std::make_shared<AvgPool2dOp>(PoolOptions{pool_window(options), {0, 0}, options.count_include_pad}),
      {x});
}

Node avg_pool2d_grad(Operand grad_out, Size2d input, AvgPool2dOptions options) {
  require_rounded_down("avg_pool2d_grad", grad_out, options.ceil_mode);
  return apply(
      std::make_shared<AvgPool2dGrad>(PoolOptions{pool_window(options), input, options.count_include_pad}),
      {grad_out});
}

Node global_avg_pool(Operand x) {
  const std::int64_t rank = x.node().shape().rank();
  require_that(rank >= 3, "global_avg_pool", {x},
               "needs the axes N, C and at least one more; reshape the value");
  std::vector<std::int64_t> axes(static_cast<std::size_t>(rank - 2));
  std::iota(axes.begin(), axes.end(), 2);
  return mean(x, {.axes = std::move(axes)});
}

namespace {

using namespace portable;

// The part of a window along one axis that lies inside the image: the elements [begin, end) of the kernel,
// the first of them at position `from` of the image.
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

// The places [begin, end) whose windows contain a position along one axis.
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

// Calls body(plane, i, j, element) for each element of a value [N, C, H, W]. Several threads share the
// planes.
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

// Calls body(i, j) with the place of the output element, for each window that contains the pixel.
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

void MaxPool2dOp::compute(const HostCall& call) const {
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { max_pool<T>(call, window()); });
}

void MaxPool2dGrad::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { max_pool_grad<T>(call, window()); });
}

void MaxPool2dGather::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { max_pool_gather<T>(call, window()); });
}

void AvgPool2dOp::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    avg_pool<T>(call, window(), options().count_include_pad);
  });
}

void AvgPool2dGrad::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    avg_pool_grad<T>(call, window(), options().count_include_pad);
  });
}

}  // namespace plexaura
