#include "models/layers/batch_norm.h"

#include <vector>

#include "core/base/error.h"
#include "core/ops/all_reduce.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"

namespace plexaura::layers {

namespace {

struct Statistics {
  Node mean;
  Node inverse;  // 1 / sqrt(variance + epsilon)
  Node variance;
  // The factor that makes the variance unbiased: n / (n - 1) for n elements; 1 if `variance` is unbiased.
  double unbiased = 1;
};

double elements_per_channel(const Shape& x) {
  return x[1] == 0 ? 0 : static_cast<double>(x.elements()) / static_cast<double>(x[1]);
}

Statistics of_own_batch(Operand x, const plexaura::BatchNormOptions& options) {
  const MomentsResult own = moments(x, options);
  const double count = elements_per_channel(x.node().shape());
  return {own.mean, own.inverse, own.variance, count < 2 ? 1 : count / (count - 1)};
}

// Returns the statistics over all ranks. Computes in float64, so that the mean square minus the square of the
// mean is exact enough.
Statistics of_all_ranks(Operand x, const plexaura::BatchNormOptions& options) {
  const MomentsResult own = moments(x, options);
  const DType dtype = own.mean.dtype();
  const std::int64_t channels = own.mean.shape()[0];
  const Node own_mean = cast(own.mean, DType::float64);
  const Node own_square = cast(own.variance, DType::float64) + square(own_mean);
  const double own_count = elements_per_channel(x.node().shape());
  const Node count_node = x.node().graph().constant(Tensor::of({1}, std::vector{own_count}));
  const Node sums = all_reduce_sum(concat({own_mean * own_count, own_square * own_count, count_node}, 0));
  const auto part = [&](std::int64_t start, std::int64_t stop) {
    return slice(sums, {.start = start, .stop = stop});
  };
  const Node count = maximum(part(2 * channels, 2 * channels + 1), 1);
  const Node mean = part(0, channels) / count;
  const Node variance = maximum(part(channels, 2 * channels) / count - square(mean), 0);
  return {cast(mean, dtype), cast(1 / sqrt(variance + options.epsilon), dtype),
          cast(variance * (count / maximum(count - 1, 1)), dtype)};
}

}  // namespace

BatchNorm::BatchNorm(std::int64_t channels, const BatchNormOptions& options)
    : options_(options),
      weight_({channels}, options.weight),
      bias_({channels}, Initialiser::zeros()),
      running_mean_({channels}, Initialiser::zeros(), ParameterRole::buffer),
      running_var_({channels}, Initialiser::ones(), ParameterRole::buffer) {
  if (options_.frozen && options_.synchronised)
    throw UserError(
        "a frozen batch norm computes no statistics that could be synchronised; give one of both");
}

void BatchNorm::members(MemberVisitor& visit) {
  visit("weight", weight_);
  visit("bias", bias_);
  visit("running_mean", running_mean_);
  visit("running_var", running_var_);
}

Node BatchNorm::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  const Shape shape = x.node().shape();
  if (shape.rank() != 5) return normalised(x);
  const Node flat = reshape(x, {shape[0], shape[1], shape[2], shape[3] * shape[4]});
  return reshape(normalised({flat, x.where()}), shape.extents());
}

Node BatchNorm::normalised(Operand x) const {
  Graph& graph = x.node().graph();
  if (graph.mode() == Mode::train && !options_.frozen) return train(x);
  return batch_norm_inference(x, weight_.in(graph), bias_.in(graph), running_mean_.in(graph),
                              running_var_.in(graph), {.epsilon = options_.epsilon});
}

Node BatchNorm::train(Operand x) const {
  Graph& graph = x.node().graph();
  const plexaura::BatchNormOptions options{.epsilon = options_.epsilon};
  const Statistics of = options_.synchronised ? of_all_ranks(x, options) : of_own_batch(x, options);
  update(running_mean_, of.mean, 1);
  update(running_var_, of.variance, of.unbiased);
  return normalise(x, weight_.in(graph), bias_.in(graph), of.mean, of.inverse);
}

// Updates a running statistic. The change is the last term of the sum, so that a training step can sum the
// change over ranks.
void BatchNorm::update(const Parameter& running, const Node& batch, double factor) const {
  Graph& graph = batch.graph();
  const Node old = running.in(graph);
  const double share = options_.momentum;
  graph.update(old, old + weighted_sum(batch, share * factor, old, -share));
}

}  // namespace plexaura::layers
