#include "core/ops/conv2d.h"

#include <fmt/format.h>

#include "core/loops/gemm.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"

namespace plexaura {

namespace {

Window2d window_of(const Conv2dOptions& options, Size2d kernel) {
  return {kernel, options.stride, options.padding, options.dilation};
}

// Checks x and weights, or grad_out in place of one of them: both must have one floating dtype and rank 4.
void require_operands(const TensorType& a, const TensorType& b, const Conv2dOptions& options) {
  require_floating(a);
  require_same_dtype(a, b);
  require_nchw(a);
  require_nchw(b);
  if (options.groups < 1) throw RuleError(fmt::format("groups must be 1 or more, not {}", options.groups));
}

std::int64_t input_channels(const Shape& weights, const Conv2dOptions& options) {
  std::int64_t channels = 0;
  if (__builtin_mul_overflow(weights[1], options.groups, &channels))
    throw RuleError(fmt::format("{} groups of {} channels are more than a 64-bit number can count",
                                options.groups, weights[1]));
  return channels;
}

void require_divisible(std::int64_t channels, std::int64_t groups, std::string_view which) {
  if (channels % groups != 0)
    throw RuleError(
        fmt::format("the {} {} channels must be divisible by groups ({})", channels, which, groups));
}

void require_outputs(const Window2d& window, Size2d input, const Shape& grad_out) {
  const Size2d expected = window.outputs(input);
  if (spatial(grad_out) != expected)
    throw RuleError(fmt::format("the gradient must have the height and width of the output, {} x {}",
                                expected.h, expected.w));
}

}  // namespace

std::vector<TensorType> Conv2dOp::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, inputs.size() == 3 ? 3 : 2);
  require_operands(inputs[0], inputs[1], options());
  const Shape& x = inputs[0].shape;
  const Shape& weights = inputs[1].shape;
  if (x[1] != input_channels(weights, options()))
    throw RuleError(
        fmt::format("the input has {} channels and the weights expect {} (their second extent times groups); "
                    "make them equal",
                    x[1], input_channels(weights, options())));
  require_divisible(weights[0], options().groups, "output");
  if (inputs.size() == 3 && inputs[2] != TensorType{inputs[0].dtype, Shape{weights[0]}})
    throw RuleError(fmt::format(
        "the bias must have one element for each of the {} output channels, and the weights' dtype",
        weights[0]));
  const Size2d out = window_of(options(), spatial(weights)).outputs(spatial(x));
  return {{inputs[0].dtype, Shape{x[0], weights[0], out.h, out.w}}};
}

std::vector<Node> Conv2dOp::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const Node& weights = request.inputs[1];
  const Node& grad = request.grad_outputs[0];
  std::vector<Node> grads(request.inputs.size());
  if (request.wanted[0]) grads[0] = conv2d_input_grad(weights, grad, spatial(x.shape()), options());
  if (request.wanted[1]) grads[1] = conv2d_weight_grad(x, grad, spatial(weights.shape()), options());
  if (grads.size() == 3 && request.wanted[2]) grads[2] = sum(grad, {.axes = {0, 2, 3}});
  return grads;
}

std::vector<TensorType> Conv2dInputGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_operands(inputs[0], inputs[1], options());
  const Shape& weights = inputs[0].shape;
  const Shape& grad_out = inputs[1].shape;
  require_divisible(weights[0], options().groups, "output");
  if (grad_out[1] != weights[0])
    throw RuleError(fmt::format("the gradient has {} channels and the weights give {}; make them equal",
                                grad_out[1], weights[0]));
  require_outputs(window_of(options(), spatial(weights)), options().input, grad_out);
  return {{inputs[0].dtype,
           Shape{grad_out[0], input_channels(weights, options()), options().input.h, options().input.w}}};
}

// Follows from <u, input_grad(w, g)> = <conv(u, w), g>.
std::vector<Node> Conv2dInputGrad::vjp(const VjpRequest& request) const {
  const Node& weights = request.inputs[0];
  const Node& grad_out = request.inputs[1];
  const Node& u = request.grad_outputs[0];
  Node grad_weights;
  Node grad_grad_out;
  const Conv2dOptions& forward = options();
  if (request.wanted[0]) grad_weights = conv2d_weight_grad(u, grad_out, spatial(weights.shape()), forward);
  if (request.wanted[1]) grad_grad_out = conv2d(u, weights, forward);
  return {grad_weights, grad_grad_out};
}

std::vector<TensorType> Conv2dWeightGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_operands(inputs[0], inputs[1], options());
  const Shape& x = inputs[0].shape;
  const Shape& grad_out = inputs[1].shape;
  require_divisible(x[1], options().groups, "input");
  require_divisible(grad_out[1], options().groups, "output");
  if (x[0] != grad_out[0]) throw RuleError("the input and the gradient must have the same number of samples");
  require_outputs(window_of(options(), options().kernel), spatial(x), grad_out);
  return {
      {inputs[0].dtype, Shape{grad_out[1], x[1] / options().groups, options().kernel.h, options().kernel.w}}};
}

// Follows from <u, weight_grad(x, g)> = <conv(x, u), g>.
std::vector<Node> Conv2dWeightGrad::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const Node& grad_out = request.inputs[1];
  const Node& u = request.grad_outputs[0];
  Node grad_x;
  Node grad_grad_out;
  const Conv2dOptions& forward = options();
  if (request.wanted[0]) grad_x = conv2d_input_grad(u, grad_out, spatial(x.shape()), forward);
  if (request.wanted[1]) grad_grad_out = conv2d(x, u, forward);
  return {grad_x, grad_grad_out};
}

Node conv2d(Operand x, Operand weights, Conv2dOptions options) {
  return apply(std::make_shared<Conv2dOp>(options), {x, weights});
}

Node conv2d(Operand x, Operand weights, Operand bias, Conv2dOptions options) {
  return apply(std::make_shared<Conv2dOp>(options), {x, weights, bias});
}

Node conv2d_input_grad(Operand weights, Operand grad_out, Size2d input, Conv2dOptions options) {
  return apply(std::make_shared<Conv2dInputGrad>(Conv2dInputGradOptions{options, input}),
               {weights, grad_out});
}

Node conv2d_weight_grad(Operand x, Operand grad_out, Size2d kernel, Conv2dOptions options) {
  return apply(std::make_shared<Conv2dWeightGrad>(Conv2dWeightGradOptions{options, kernel}), {x, grad_out});
}

namespace {

using namespace portable;

// The sizes of a convolution, in channels per group, and the products of sizes from which offsets are
// computed.
struct Sizes {
  Sizes(const Shape& x, const Shape& weights, const Shape& y, const Conv2dOptions& of)
      : options(of),
        groups(of.groups),
        samples(x[0]),
        channels(weights[1]),
        height(x[2]),
        width(x[3]),
        outputs(weights[0] / of.groups),
        out_height(y[2]),
        out_width(y[3]),
        kernel_h(weights[2]),
        kernel_w(weights[3]) {}

  std::int64_t kernel() const { return kernel_h * kernel_w; }
  std::int64_t pixels() const { return height * width; }
  std::int64_t places() const { return out_height * out_width; }

  // Offsets of a channel's first element. `product` is the index of a matrix product, one for each sample and
  // group: n * groups + g.
  std::int64_t x(std::int64_t product, std::int64_t c) const { return (product * channels + c) * pixels(); }
  std::int64_t y(std::int64_t product, std::int64_t o) const { return (product * outputs + o) * places(); }
  std::int64_t weights(std::int64_t g, std::int64_t o) const {
    return (g * outputs + o) * channels * kernel();
  }

  // Returns the input row that the kernel's row a reads for output row i. from_w() does the same for columns.
  std::int64_t from_h(std::int64_t i, std::int64_t a) const {
    return i * options.stride.h - options.padding.h + a * options.dilation.h;
  }
  std::int64_t from_w(std::int64_t j, std::int64_t b) const {
    return j * options.stride.w - options.padding.w + b * options.dilation.w;
  }

  const Conv2dOptions& options;
  std::int64_t groups;
  std::int64_t samples;
  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;
  std::int64_t outputs;
  std::int64_t out_height;
  std::int64_t out_width;
  std::int64_t kernel_h;
  std::int64_t kernel_w;
};

// dst[i] = src[first + i * step] if that index lies in [0, extent), else 0.
template <class T, class Sum>
void gather(const T* src, std::int64_t extent, std::int64_t first, std::int64_t step, std::int64_t count,
            Sum* dst) {
  const std::int64_t begin = std::clamp<std::int64_t>((step - 1 - first) / step, 0, count);
  const std::int64_t end =
      std::clamp<std::int64_t>(first < extent ? (extent - first + step - 1) / step : 0, begin, count);
  std::fill(dst, dst + begin, Sum(0));
  for (std::int64_t i = begin; i < end; ++i) dst[i] = static_cast<Sum>(src[first + i * step]);
  std::fill(dst + end, dst + count, Sum(0));
}

// Writes the elements of one channel that the element (a, b) of the kernel reads for the output places
// [place, place + count).
template <class T, class Sum>
void seen_by(const Sizes& size, const T* channel, std::int64_t a, std::int64_t b, std::int64_t place,
             std::int64_t count, Sum* dst) {
  while (count > 0) {
    const std::int64_t i = place / size.out_width;
    const std::int64_t j = place % size.out_width;
    const std::int64_t run = std::min(count, size.out_width - j);
    const std::int64_t row = size.from_h(i, a);
    if (row < 0 || row >= size.height)
      std::fill(dst, dst + run, Sum(0));
    else
      gather(channel + row * size.width, size.width, size.from_w(j, b), size.options.stride.w, run, dst);
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

// Writes the gradients of one output channel that the element (a, b) of the kernel passes to the pixels
// [pixel, pixel + count).
template <class T, class Sum>
void brought_by(const Sizes& size, const T* channel, std::int64_t a, std::int64_t b, std::int64_t pixel,
                std::int64_t count, Sum* dst) {
  while (count > 0) {
    const std::int64_t column = pixel % size.width;
    const std::int64_t run = std::min(count, size.width - column);
    const std::int64_t i =
        seen_from(pixel / size.width, size.from_h(0, a), size.options.stride.h, size.out_height);
    std::fill(dst, dst + run, Sum(0));
    if (i >= 0) {
      const T* row = channel + i * size.out_width;
      const std::int64_t offset = size.from_w(0, b);
      const std::int64_t stride = size.options.stride.w;
      std::int64_t j = std::max<std::int64_t>(0, (column - offset + stride - 1) / stride);
      for (; j < size.out_width && offset + j * stride < column + run; ++j)
        dst[offset + j * stride - column] = static_cast<Sum>(row[j]);
    }
    pixel += run;
    dst += run;
    count -= run;
  }
}

// Multiplies the weights, [O, C K], by the patches of x, [C K, OH OW], for each sample and group.
template <class T>
void forward(const HostCall& call, const Sizes& size) {
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
        const std::int64_t ab = k % size.kernel();
        seen_by(size, src + size.x(product, k / size.kernel()), ab / size.kernel_w, ab % size.kernel_w, place,
                count, to);
      },
      [&](std::int64_t product, std::int64_t o, std::int64_t place, std::int64_t count, const Sum* from) {
        const Sum added =
            bias == nullptr ? Sum(0) : static_cast<Sum>(bias[product % size.groups * size.outputs + o]);
        T* to = dst + size.y(product, o) + place;
        for (std::int64_t i = 0; i < count; ++i) to[i] = T(from[i] + added);
      });
}

// Multiplies the weights, [C, O K], by the gradients that reach each pixel, [O K, H W], for each sample and
// group.
template <class T>
void input_grad(const HostCall& call, const Sizes& size) {
  using Sum = Products<T>;
  const T* weights = call.inputs[0].as<T>();
  const T* diff_dst = call.inputs[1].as<T>();
  T* diff_src = call.outputs[0].as<T>();
  gemm<Sum>(
      size.samples * size.groups, size.channels, size.pixels(), size.outputs * size.kernel(),
      [&](std::int64_t product, std::int64_t c, std::int64_t k, std::int64_t count, Sum* to) {
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t o = (k + i) / size.kernel();
          const std::int64_t ab = (k + i) % size.kernel();
          to[i] = static_cast<Sum>(weights[size.weights(product % size.groups, o) + c * size.kernel() + ab]);
        }
      },
      [&](std::int64_t product, std::int64_t k, std::int64_t pixel, std::int64_t count, Sum* to) {
        const std::int64_t ab = k % size.kernel();
        brought_by(size, diff_dst + size.y(product, k / size.kernel()), ab / size.kernel_w,
                   ab % size.kernel_w, pixel, count, to);
      },
      [&](std::int64_t product, std::int64_t c, std::int64_t pixel, std::int64_t count, const Sum* from) {
        T* to = diff_src + size.x(product, c) + pixel;
        for (std::int64_t i = 0; i < count; ++i) to[i] = T(from[i]);
      });
}

// Multiplies the patches of x, [C K, N OH OW], by the gradient, [N OH OW, O], for each group. The result is
// the weights' gradient, transposed.
template <class T>
void weight_grad(const HostCall& call, const Sizes& size) {
  using Sum = Products<T>;
  const T* src = call.inputs[0].as<T>();
  const T* diff_dst = call.inputs[1].as<T>();
  T* diff_weights = call.outputs[0].as<T>();
  const std::int64_t places = size.places();
  gemm<Sum>(
      size.groups, size.channels * size.kernel(), size.outputs, size.samples * places,
      [&](std::int64_t g, std::int64_t row, std::int64_t k, std::int64_t count, Sum* to) {
        const std::int64_t ab = row % size.kernel();
        while (count > 0) {
          const std::int64_t run = std::min(count, places - k % places);
          const T* channel = src + size.x(k / places * size.groups + g, row / size.kernel());
          seen_by(size, channel, ab / size.kernel_w, ab % size.kernel_w, k % places, run, to);
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
      });
}

}  // namespace

void Conv2dOp::compute(const HostCall& call) const {
  const HostView& y = call.outputs[0];
  if (y.data == nullptr || y.elements() == 0) return;
  const Sizes size(call.inputs[0].shape(), call.inputs[1].shape(), y.shape(), options());
  dispatch_floating(y.dtype(), [&]<class T>(std::type_identity<T>) { forward<T>(call, size); });
}

void Conv2dInputGrad::compute(const HostCall& call) const {
  const HostView& x = call.outputs[0];
  if (x.data == nullptr || x.elements() == 0) return;
  const Sizes size(x.shape(), call.inputs[0].shape(), call.inputs[1].shape(), options());
  dispatch_floating(x.dtype(), [&]<class T>(std::type_identity<T>) { input_grad<T>(call, size); });
}

void Conv2dWeightGrad::compute(const HostCall& call) const {
  const HostView& weights = call.outputs[0];
  if (weights.data == nullptr || weights.elements() == 0) return;
  const Sizes size(call.inputs[0].shape(), weights.shape(), call.inputs[1].shape(), options());
  dispatch_floating(weights.dtype(), [&]<class T>(std::type_identity<T>) { weight_grad<T>(call, size); });
}

}  // namespace plexaura
