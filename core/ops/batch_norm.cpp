#include "core/ops/batch_norm.h"

#include <fmt/format.h>

#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

DType dtype_of_statistics(DType x) { return x == DType::float64 ? DType::float64 : DType::float32; }

TensorType type_of_statistics(const TensorType& x) {
  return {dtype_of_statistics(x.dtype), Shape{x.shape[1]}};
}

// x and those of the inputs that have one element per channel.
void require_channels(const TensorType& x, std::span<const TensorType> by_channel,
                      const BatchNormOptions& options) {
  require_floating(x);
  if (x.shape.rank() < 2 || x.shape.rank() > 4)
    throw RuleError(fmt::format("needs an input of two to four axes, N, C and more (here {}); reshape it",
                                x.shape.rank()));
  const TensorType expected = type_of_statistics(x);
  for (const TensorType& type : by_channel)
    if (type != expected)
      throw RuleError(
          fmt::format("scale, shift, mean and variance must be {}, one element for each channel of the input",
                      to_string(expected)));
  if (!(options.epsilon > 0))
    throw RuleError(fmt::format("epsilon must be above 0, not {}", options.epsilon));
}

// All axes but the channels'.
std::vector<std::int64_t> other_axes(const Shape& x) {
  std::vector<std::int64_t> axes{0};
  for (std::int64_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

// [C] -> [C, 1, ...], so that it broadcasts to x.
Node by_channel(const Node& statistics, const Shape& x) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank() - 1), 1);
  extents[0] = x[1];
  return reshape(statistics, extents);
}

// Batch normalisation written out with small ops: what second derivatives are made of. All values are of the
// statistics' dtype.
class WrittenOut {
 public:
  WrittenOut(const Node& x, double epsilon) : shape_(x.shape()) {
    const Node wide = cast(x, dtype_of_statistics(x.dtype()));
    const Node centred = wide - mean_of(wide);
    inverse_ = 1 / sqrt(mean_of(square(centred)) + epsilon);
    normal_ = centred * inverse_;
  }

  const Node& inverse() const { return inverse_; }  // 1 / sqrt(variance + epsilon), [1, C, 1, ...]
  const Node& normal() const { return normal_; }    // (x - mean) * inverse
  Node mean_of(const Node& v) const { return mean(v, {.axes = other_axes(shape_), .keepdims = true}); }
  Node sum_of(const Node& v) const { return sum(v, {.axes = other_axes(shape_)}); }

  // What is left of v without its mean and its part along the normalised input; symmetric: <u, rest(v)> =
  // <rest(u), v>.
  Node rest(const Node& v) const { return v - mean_of(v) - normal_ * mean_of(v * normal_); }

 private:
  Shape shape_;
  Node inverse_;
  Node normal_;
};

}  // namespace

std::vector<TensorType> BatchNorm::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 3);
  require_channels(inputs[0], inputs.subspan(1, 2), options());
  return {inputs[0], inputs[1], inputs[1]};
}

std::vector<Node> BatchNorm::vjp(const VjpRequest& request) const {
  const BatchNormGradResult grads = batch_norm_grad(request.inputs[0], request.inputs[1], request.outputs[1],
                                                    request.outputs[2], request.grad_outputs[0], options());
  return {grads.x, grads.scale, grads.shift};
}

std::vector<TensorType> BatchNormGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 5);
  require_channels(inputs[0], inputs.subspan(1, 3), options());
  if (inputs[4] != inputs[0]) throw RuleError("the gradient must have the type and shape of the input");
  return {inputs[0], inputs[1], inputs[1]};
}

// With n the normalised input, r = inverse, m the mean over all axes but C, P = rest, s = scale and g =
// grad_out the op gives s r P(g), sum(g n) and sum(g). Against cotangents u, v and w of these:
//   to g: s r P(u) + v n + w;   to s: r sum(u P(g));
//   to x: r v P(g) - s r^2 (n (m(u g) - m(u) m(g) - a b) + b P(u) + a P(g)) with a = m(u n), b = m(g n).
std::vector<Node> BatchNormGrad::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const WrittenOut of(x, options().epsilon);
  const Node scale = by_channel(request.inputs[1], x.shape());
  const Node g = cast(request.inputs[4], scale.dtype());
  const auto wide = [&](const Node& node) { return node ? cast(node, scale.dtype()) : Node(); };
  const Node u = wide(request.grad_outputs[0]);
  const Node& v = request.grad_outputs[1];
  const Node& w = request.grad_outputs[2];
  const Node& n = of.normal();
  const Node& r = of.inverse();
  const auto plus = [](const Node& a, const Node& b) { return a && b ? a + b : (a ? a : b); };

  Node grad_x;
  Node grad_scale;
  Node grad_g;
  if (u) {
    const Node rest_of_g = of.rest(g);
    const Node rest_of_u = of.rest(u);
    const Node a = of.mean_of(u * n);
    const Node b = of.mean_of(g * n);
    const Node q = of.mean_of(u * g) - of.mean_of(u) * of.mean_of(g) - a * b;
    grad_x = -(scale * square(r) * (n * q + b * rest_of_u + a * rest_of_g));
    grad_scale = of.sum_of(u * rest_of_g * r);
    grad_g = scale * r * rest_of_u;
  }
  if (v) {
    const Node along = by_channel(v, x.shape());
    grad_x = plus(grad_x, along * r * of.rest(g));
    grad_g = plus(grad_g, along * n);
  }
  if (w) grad_g = plus(grad_g, broadcast_to(by_channel(w, x.shape()), x.shape()));
  const auto narrow = [&](const Node& node) { return node ? cast(node, x.dtype()) : Node(); };
  return {narrow(grad_x), grad_scale, Node(), Node(), narrow(grad_g)};
}

std::vector<TensorType> BatchNormInference::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 5);
  require_channels(inputs[0], inputs.subspan(1), options());
  return {inputs[0]};
}

std::vector<Node> BatchNormInference::vjp(const VjpRequest& request) const {
  const Node& x = request.inputs[0];
  const Shape& shape = x.shape();
  const DType dtype = dtype_of_statistics(x.dtype());
  const Node scale = by_channel(request.inputs[1], shape);
  const Node centred = cast(x, dtype) - by_channel(request.inputs[3], shape);
  const Node inverse = 1 / sqrt(by_channel(request.inputs[4], shape) + options().epsilon);
  const Node g = cast(request.grad_outputs[0], dtype);
  const ReduceOptions others{.axes = other_axes(shape)};
  std::vector<Node> grads(5);
  if (request.wanted[0]) grads[0] = cast(g * scale * inverse, x.dtype());
  if (request.wanted[1]) grads[1] = sum(g * centred * inverse, others);
  if (request.wanted[2]) grads[2] = sum(g, others);
  if (request.wanted[3]) grads[3] = -sum(g * scale * inverse, others);
  if (request.wanted[4]) grads[4] = sum(g * centred * (-0.5 * scale * inverse * square(inverse)), others);
  return grads;
}

BatchNormResult batch_norm(Operand x, Operand scale, Operand shift, BatchNormOptions options) {
  const std::vector<Operand> operands{x, scale, shift};
  const std::vector<Node> results = apply_all(std::make_shared<BatchNorm>(options), operands);
  return {results[0], results[1], results[2]};
}

BatchNormGradResult batch_norm_grad(Operand x, Operand scale, Operand mean, Operand variance,
                                    Operand grad_out, BatchNormOptions options) {
  const std::vector<Operand> operands{x, scale, mean, variance, grad_out};
  const std::vector<Node> results = apply_all(std::make_shared<BatchNormGrad>(options), operands);
  return {results[0], results[1], results[2]};
}

Node batch_norm_inference(Operand x, Operand scale, Operand shift, Operand mean, Operand variance,
                          BatchNormOptions options) {
  return apply(std::make_shared<BatchNormInference>(options), {x, scale, shift, mean, variance});
}

}  // namespace plexaura
