// Normalisation.

#include "core/ops/norms.h"

#include <fmt/format.h>

#include "onnx/ops/table.h"

#include "core/ops/axes.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

// [C] -> [C, 1, ...], to be combined with x [N, C, ...].
Node per_channel(const Node& values, const Node& x) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.shape().rank() - 1), 1);
  extents[0] = values.shape()[0];
  return reshape(values, extents);
}

// Moments are computed in float32, or in float64 for a wider x.
Node exact(const Node& x) { return cast(x, wide_dtype_of(x)); }

// scale (x - mean) / sqrt(variance + epsilon) + shift for x [N, C, ...]; all others are [C].
Node normalised(const Call& call, const Node& mean, const Node& variance, double epsilon) {
  const Node x = call[0];
  const DType dtype = exact(x).dtype();
  const Node scale = cast(call[1], dtype);
  const Node shift = cast(call[2], dtype);
  if (x.shape().rank() <= 4)
    return batch_norm_inference(x, scale, shift, cast(mean, dtype), cast(variance, dtype),
                                {.epsilon = epsilon});
  const Node factor = per_channel(scale * rsqrt(cast(variance, dtype) + epsilon), x);
  return cast((exact(x) - per_channel(cast(mean, dtype), x)) * factor + per_channel(shift, x), x.dtype());
}

void check_batch_norm(const Call& call) {
  const Shape& shape = call[0].shape();
  if (shape.rank() < 2)
    throw UserError(fmt::format("x must have the axes N and C, not {}", to_string(shape)));
  for (std::size_t i = 1; i < 5; ++i)
    if (call[i].shape() != Shape{shape[1]})
      throw UserError(
          fmt::format("input {} must have one element for each channel of {}, but has the shape {}", i,
                      to_string(shape), to_string(call[i].shape())));
}

// With training_mode the moments are those of the batch, and the running ones are further outputs.
std::vector<Node> batch_normalisation(Call& call) {
  check_batch_norm(call);
  const double epsilon = call.real("epsilon", 1e-5F);
  const double momentum = call.real("momentum", 0.9F);
  if (call.version() < 7 && !call.flag("is_test", false))
    throw UserError("before version 7 it is supported with is_test only");
  if (!call.flag("spatial", true)) throw UserError("moments of each place are not supported");
  if (!call.flag("training_mode", false)) {
    if (call.wants(1)) throw UserError("outputs of the moments need training_mode");
    return {normalised(call, call[3], call[4], epsilon)};
  }
  const Node x = exact(call[0]);
  ReduceOptions others{.axes = {0}};
  for (std::int64_t axis = 2; axis < x.shape().rank(); ++axis) others.axes.push_back(axis);
  const Node batch_mean = mean(x, others);
  const Node variance = mean(square(x - per_channel(batch_mean, x)), others);
  const auto running = [&](const Node& before, const Node& batch) {
    return weighted_sum(before, momentum, cast(batch, before.dtype()), 1 - momentum);
  };
  return {normalised(call, batch_mean, variance, epsilon), running(call[3], batch_mean),
          running(call[4], variance)};
}

std::vector<Node> instance_normalisation(Call& call) {
  const DType dtype = exact(call[0]).dtype();
  return {instance_norm(call[0], cast(call[1], dtype), cast(call[2], dtype),
                        {.epsilon = call.real("epsilon", 1e-5F)})};
}

std::vector<Node> response_normalisation(Call& call) {
  const double alpha = call.real("alpha", 1e-4F);
  const double beta = call.real("beta", 0.75);
  const double k = call.real("bias", 1);
  // For an even size, the standard takes one channel more after the element's own, and local_response_norm() one more
  // before it.
  const std::int64_t size = call.integer("size", 1);
  if (size % 2 == 0) throw UserError(fmt::format("size must be odd, not {}", size));
  return {local_response_norm(call[0], size, {.alpha = alpha, .beta = beta, .k = k})};
}

// The mean and the inverse deviation over the axes from `axis` on are further outputs.
std::vector<Node> layer_normalisation(Call& call) {
  const Node x = call[0];
  call.ignore("stash_type");
  const double epsilon = call.real("epsilon", 1e-5F);
  ReduceOptions last{.keepdims = true};
  for (std::int64_t axis = normalise_axis(call.integer("axis", -1), x.shape().rank());
       axis < x.shape().rank(); ++axis)
    last.axes.push_back(axis);
  const Node wide = exact(x);
  const Node centre = mean(wide, last);
  const Node centred = wide - centre;
  const Node inverse = rsqrt(mean(square(centred), last) + epsilon);
  const Node scaled = cast(centred * inverse, x.dtype()) * call[1];
  return {with_shape_of(x, call.has(2) ? scaled + call[2] : scaled), centre, inverse};
}

std::vector<Node> mean_variance_normalisation(Call& call) {
  const Node x = exact(call[0]);
  const ReduceOptions options{.axes = call.integers("axes", {0, 2, 3}), .keepdims = true};
  const Node centred = x - mean(x, options);
  return {cast(centred / (sqrt(mean(square(centred), options)) + 1e-9), call[0].dtype())};
}

std::vector<Node> lp_normalisation(Call& call) {
  const ReduceOptions options{.axes = {call.integer("axis", -1)}, .keepdims = true};
  const std::int64_t p = call.integer("p", 2);
  if (p != 1 && p != 2) throw UserError(fmt::format("p must be 1 or 2, not {}", p));
  const Node x = exact(call[0]);
  return {cast(x / (p == 1 ? sum(abs(x), options) : sqrt(sum(square(x), options))), call[0].dtype())};
}

constexpr Row rows_of_norms[] = {
    {"BatchNormalization", 6, batch_normalisation},
    {"InstanceNormalization", 1, instance_normalisation},
    {"LRN", 1, response_normalisation},
    {"LayerNormalization", 17, layer_normalisation},
    {"LpNormalization", 1, lp_normalisation},
    {"MeanVarianceNormalization", 9, mean_variance_normalisation},
};

}  // namespace

std::span<const Row> norm_rows() { return rows_of_norms; }

}  // namespace plexaura::onnx
