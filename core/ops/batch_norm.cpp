#include "core/ops/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
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

void require_image(const TensorType& x) {
  require_floating(x);
  if (x.shape.rank() < 2 || x.shape.rank() > 4)
    throw RuleError(fmt::format("needs an input of two to four axes, N, C and more (here {}); reshape it",
                                x.shape.rank()));
}

// Checks x, and the inputs that must have one element per channel.
void require_channels(const TensorType& x, std::span<const TensorType> by_channel) {
  require_image(x);
  const TensorType expected = type_of_statistics(x);
  for (const TensorType& type : by_channel)
    if (type != expected)
      throw RuleError(
          fmt::format("scale, shift, mean and inverse must be {}, one element for each channel of the input",
                      to_string(expected)));
}

// [C] -> [C, 1, ...], so that it broadcasts to x.
Node by_channel(const Node& statistics, const Shape& x) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.rank() - 1), 1);
  extents[0] = x[1];
  return reshape(statistics, extents);
}

// [N, C, ...] -> [C].
Node sum_by_channel(const Node& x) {
  std::vector<std::int64_t> axes{0};
  for (std::int64_t axis = 2; axis < x.shape().rank(); ++axis) axes.push_back(axis);
  return sum(x, {.axes = axes});
}

Node wide(const Node& x) { return x.is_empty() ? Node() : cast(x, dtype_of_statistics(x.dtype())); }

// a + b, where an empty node stands for 0.
Node plus(const Node& a, const Node& b) {
  if (a.is_empty()) return b;
  return b.is_empty() ? a : a + b;
}

// x - mean in the dtype of the statistics, which the second derivatives use.
Node centred(const Node& x, const Node& mean) { return wide(x) - by_channel(mean, x.shape()); }

Node cube(const Node& x) { return x * square(x); }

// Inputs: x, scale, shift, mean, inverse. Output: y.
class Normalise final : public OpOf<Normalise> {
 public:
  std::string_view name() const override { return "normalise"; }
  OpTraits traits() const override { return {.precision = Precision::follows, .wide_inputs = {1, 2, 3, 4}}; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 5);
    require_channels(inputs[0], inputs.subspan(1));
    return {inputs[0]};
  }

  std::vector<Node> vjp(const VjpRequest& request) const override {
    const auto& of = request.inputs;
    const NormaliseGradResult grads = normalise_grad(of[0], of[1], of[3], of[4], request.grad_outputs[0]);
    return {grads.x, grads.scale, grads.shift, grads.mean, grads.inverse};
  }

  void compute(const HostCall& call) const;
};

// Inputs: x, scale, mean, inverse, grad_out. Outputs: the gradients of x, scale, shift, mean and inverse.
class NormaliseGrad final : public OpOf<NormaliseGrad> {
 public:
  std::string_view name() const override { return "normalise_grad"; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 5);
    require_channels(inputs[0], inputs.subspan(1, 3));
    if (inputs[4] != inputs[0]) throw RuleError("the gradient must have the type and shape of the input");
    return {inputs[0], inputs[1], inputs[1], inputs[1], inputs[1]};
  }

  // With c = x - mean, s = scale, r = inverse, g = grad_out, S = sum(g) and T = sum(g c), the outputs are g s
  // r, r T, S, -s r S and s T. If u, v, w, m and q are their gradients, and k = v r + q s, the gradients of
  // the inputs are
  //   g: u s r + k c + w - m s r;   x: k g;   mean: -k S;
  //   s: r sum(u g) - m r S + q T;   r: s sum(u g) + v T - m s S.
  std::vector<Node> vjp(const VjpRequest& request) const override {
    const Shape& shape = request.inputs[0].shape();
    const Node c = centred(request.inputs[0], request.inputs[2]);
    const Node& s = request.inputs[1];
    const Node& r = request.inputs[3];
    const Node g = wide(request.inputs[4]);
    const Node u = wide(request.grad_outputs[0]);
    const Node& v = request.grad_outputs[1];
    const Node& w = request.grad_outputs[2];
    const Node& m = request.grad_outputs[3];
    const Node& q = request.grad_outputs[4];
    const Node sum_g = sum_by_channel(g);
    const Node sum_gc = sum_by_channel(g * c);
    const auto times = [](const Node& a, const Node& b) { return a.is_empty() ? Node() : a * b; };
    const auto over_x = [&](const Node& a) { return a.is_empty() ? Node() : by_channel(a, shape); };

    const Node k = plus(times(v, r), times(q, s));
    const Node along = u.is_empty() ? Node() : sum_by_channel(u * g);
    const Node lost = m.is_empty() ? Node() : -(m * sum_g);
    const Node level = plus(w, m.is_empty() ? Node() : -(m * s * r));
    Node to_g = plus(times(u, by_channel(s * r, shape)), times(over_x(k), c));
    if (!level.is_empty()) to_g = plus(to_g, broadcast_to(over_x(level), shape));
    const auto narrow = [&](const Node& x) {
      return x.is_empty() ? Node() : cast(x, request.inputs[0].dtype());
    };
    return {narrow(times(over_x(k), g)), plus(times(plus(along, lost), r), times(q, sum_gc)),
            k.is_empty() ? Node() : -(k * sum_g), plus(times(plus(along, lost), s), times(v, sum_gc)),
            narrow(to_g)};
  }

  void compute(const HostCall& call) const;
};

// Inputs: x, mean, inverse, grad_mean, grad_inverse. Output: the gradient of x.
class MomentsGrad final : public OpOf<MomentsGrad> {
 public:
  std::string_view name() const override { return "moments_grad"; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    require_inputs(inputs, 5);
    require_channels(inputs[0], inputs.subspan(1));
    return {inputs[0]};
  }

  // c = x - mean, r = inverse, p = grad_mean, q = grad_inverse. The output is (p - c r^3 q) / n, and u is its
  // gradient.
  std::vector<Node> vjp(const VjpRequest& request) const override {
    const Node& x = request.inputs[0];
    const Node c = centred(x, request.inputs[1]);
    const Node& r = request.inputs[2];
    const Node& q = request.inputs[4];
    const std::int64_t channels = std::max<std::int64_t>(x.shape()[1], 1);
    const double share = 1 / static_cast<double>(std::max<std::int64_t>(x.shape().elements() / channels, 1));
    const Node u = share * wide(request.grad_outputs[0]);
    const Node level = sum_by_channel(u);
    const Node along = sum_by_channel(u * c);
    const Node steep = cube(r) * q;
    return {cast(-(by_channel(steep, x.shape()) * u), x.dtype()), steep * level, -3 * (square(r) * q * along),
            level, -(cube(r) * along)};
  }

  void compute(const HostCall& call) const;
};

}  // namespace

std::vector<TensorType> Moments::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  require_image(inputs[0]);
  if (!(options().epsilon > 0))
    throw RuleError(fmt::format("epsilon must be above 0, not {}", options().epsilon));
  return std::vector<TensorType>(3, type_of_statistics(inputs[0]));
}

// The variance is inverse^-2 - epsilon, so its gradient is converted to a gradient of the inverse.
std::vector<Node> Moments::vjp(const VjpRequest& request) const {
  const Node& inverse = request.outputs[2];
  const auto or_zero = [&](const Node& grad) {
    return grad.is_empty() ? inverse.graph().constant(Tensor(inverse.type())) : grad;
  };
  const Node& of_variance = request.grad_outputs[1];
  const Node of_inverse =
      plus(request.grad_outputs[2], of_variance.is_empty() ? Node() : -2 * of_variance / cube(inverse));
  return {moments_grad(request.inputs[0], request.outputs[0], inverse, or_zero(request.grad_outputs[0]),
                       or_zero(of_inverse))};
}

MomentsResult moments(Operand x, BatchNormOptions options) {
  const std::vector<Operand> operands{x};
  const std::vector<Node> results = apply_all(std::make_shared<Moments>(options), operands);
  return {results[0], results[1], results[2]};
}

Node normalise(Operand x, Operand scale, Operand shift, Operand mean, Operand inverse) {
  return apply(std::make_shared<Normalise>(), {x, scale, shift, mean, inverse});
}

BatchNormResult batch_norm(Operand x, Operand scale, Operand shift, BatchNormOptions options) {
  const MomentsResult of = moments(x, options);
  const auto at = x.where();
  return {normalise(x, scale, shift, {of.mean, at}, {of.inverse, at}), of.mean, of.variance};
}

void check_batch_norms(const Graph& graph, std::string_view remedy) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeRecord& record = graph.record(id);
    if (record.op->name() != "normalise") continue;
    const Value mean = record.inputs[3];
    const TensorType& x = record.types[0];
    if (graph.record(mean.node).op->name() != "moments" || x.shape.elements() != x.shape[1]) continue;
    if (x.shape[1] > 0)
      throw UserError(
          fmt::format("{}: batch_norm({}) has one element per channel, which is its own mean, so that "
                      "nothing before it would be trained; {}",
                      to_string(record.origin), to_string(x), remedy));
  }
}

Node batch_norm_inference(Operand x, Operand scale, Operand shift, Operand mean, Operand variance,
                          BatchNormOptions options) {
  const auto at = x.where();
  if (!(options.epsilon > 0))
    throw UserError(fmt::format("{}: batch_norm_inference({}): epsilon must be above 0, not {}",
                                to_string(place_of_caller(x)), to_string(x.node().type()), options.epsilon));
  const Node deviation = sqrt({add(variance, {options.epsilon, at}), at});
  return normalise(x, scale, shift, mean, {div({1, at}, {deviation, at}), at});
}

Node moments_grad(Operand x, Operand mean, Operand inverse, Operand grad_mean, Operand grad_inverse) {
  return apply(std::make_shared<MomentsGrad>(), {x, mean, inverse, grad_mean, grad_inverse});
}

NormaliseGradResult normalise_grad(Operand x, Operand scale, Operand mean, Operand inverse,
                                   Operand grad_out) {
  const std::vector<Operand> operands{x, scale, mean, inverse, grad_out};
  const std::vector<Node> results = apply_all(std::make_shared<NormaliseGrad>(), operands);
  return {results[0], results[1], results[2], results[3], results[4]};
}

namespace {

using namespace portable;

// x as [N, C, S]: the elements of a channel are N runs of S.
struct Channels {
  explicit Channels(const Shape& x) : samples(x[0]), channels(x[1]) {
    for (std::int64_t axis = 2; axis < x.rank(); ++axis) run *= x[axis];
  }

  std::int64_t count() const { return samples * run; }

  // Calls body(element) for the index of each element of a channel.
  template <class Body>
  void for_each(std::int64_t channel, const Body& body) const {
    for (std::int64_t n = 0; n < samples; ++n) {
      const std::int64_t first = (n * channels + channel) * run;
      for (std::int64_t i = first; i < first + run; ++i) body(i);
    }
  }

  std::int64_t samples;
  std::int64_t channels;
  std::int64_t run = 1;
};

// The type of values with one element per channel.
template <class T>
using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
double element(const HostView& view, std::int64_t channel) {
  return static_cast<double>(view.as<Statistic<T>>()[channel]);
}

template <class T>
void store(const HostView& view, std::int64_t channel, double value) {
  if (view.data != nullptr) view.as<Statistic<T>>()[channel] = static_cast<Statistic<T>>(value);
}

// Returns mean and variance.
template <class T>
std::pair<double, double> moments_of(const Channels& of, const T* src, std::int64_t channel) {
  if (of.count() == 0) return {0, 0};
  const auto count = static_cast<double>(of.count());
  double mean = 0;
  of.for_each(channel, [&](std::int64_t i) { mean += static_cast<double>(src[i]); });
  mean /= count;
  double variance = 0;
  of.for_each(channel, [&](std::int64_t i) {
    const double centred = static_cast<double>(src[i]) - mean;
    variance += centred * centred;
  });
  return {mean, variance / count};
}

template <class T>
void compute_moments(const HostCall& call, double epsilon) {
  const Channels of(call.inputs[0].shape());
  parallel_for(of.channels, of.count() * 3, [&](std::int64_t c) {
    const auto [mean, variance] = moments_of(of, call.inputs[0].as<T>(), c);
    store<T>(call.outputs[0], c, mean);
    store<T>(call.outputs[1], c, variance);
    store<T>(call.outputs[2], c, 1 / std::sqrt(variance + epsilon));
  });
}

template <class T>
void compute_moments_grad(const HostCall& call) {
  const Channels of(call.inputs[0].shape());
  const T* src = call.inputs[0].as<T>();
  T* diff_src = call.outputs[0].as<T>();
  const auto count = static_cast<double>(of.count());
  parallel_for(of.channels, of.count(), [&](std::int64_t c) {
    const double mean = element<T>(call.inputs[1], c);
    const double inverse = element<T>(call.inputs[2], c);
    const double level = element<T>(call.inputs[3], c) / count;
    const double tilt = inverse * inverse * inverse * element<T>(call.inputs[4], c) / count;
    of.for_each(
        c, [=](std::int64_t i) { diff_src[i] = T(level - (static_cast<double>(src[i]) - mean) * tilt); });
  });
}

template <class T>
void compute_normalise(const HostCall& call) {
  const Channels of(call.inputs[0].shape());
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  parallel_for(of.channels, of.count(), [&](std::int64_t c) {
    const double factor = element<T>(call.inputs[1], c) * element<T>(call.inputs[4], c);
    const double shift = element<T>(call.inputs[2], c);
    const double mean = element<T>(call.inputs[3], c);
    of.for_each(c,
                [=](std::int64_t i) { dst[i] = T((static_cast<double>(src[i]) - mean) * factor + shift); });
  });
}

template <class T>
void compute_normalise_grad(const HostCall& call) {
  const Channels of(call.inputs[0].shape());
  const T* src = call.inputs[0].as<T>();
  const T* diff_dst = call.inputs[4].as<T>();
  T* diff_src = call.outputs[0].as<T>();
  parallel_for(of.channels, of.count() * 3, [&](std::int64_t c) {
    const double scale = element<T>(call.inputs[1], c);
    const double mean = element<T>(call.inputs[2], c);
    const double inverse = element<T>(call.inputs[3], c);
    double sum = 0;
    double along = 0;
    of.for_each(c, [&](std::int64_t i) {
      const auto grad = static_cast<double>(diff_dst[i]);
      sum += grad;
      along += grad * (static_cast<double>(src[i]) - mean);
    });
    store<T>(call.outputs[1], c, inverse * along);
    store<T>(call.outputs[2], c, sum);
    store<T>(call.outputs[3], c, -scale * inverse * sum);
    store<T>(call.outputs[4], c, scale * along);
    if (diff_src == nullptr) return;
    const double factor = scale * inverse;
    of.for_each(c, [=](std::int64_t i) { diff_src[i] = T(static_cast<double>(diff_dst[i]) * factor); });
  });
}

}  // namespace

void Moments::compute(const HostCall& call) const {
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { compute_moments<T>(call, options().epsilon); });
}

void MomentsGrad::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { compute_moments_grad<T>(call); });
}

void Normalise::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { compute_normalise<T>(call); });
}

void NormaliseGrad::compute(const HostCall& call) const {
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { compute_normalise_grad<T>(call); });
}

}  // namespace plexaura
