#include "models/layers/batch_norm2d.h"

#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"

namespace plexaura::layers {

namespace {

// variance n / (n - 1), where n elements were averaged.
Node unbiased(const Node& variance, const Node& x) {
  const std::int64_t channels = x.shape()[1];
  const std::int64_t count = channels == 0 ? 0 : x.shape().elements() / channels;
  if (count < 2) return variance;
  return mul(variance, static_cast<double>(count) / static_cast<double>(count - 1));
}

}  // namespace

BatchNorm2d::BatchNorm2d(std::int64_t channels, const BatchNorm2dOptions& options)
    : options_(options),
      weight_({channels}, options.weight),
      bias_({channels}, Initialiser::zeros()),
      running_mean_({channels}, Initialiser::zeros(), ParameterRole::buffer),
      running_var_({channels}, Initialiser::ones(), ParameterRole::buffer) {}

void BatchNorm2d::members(MemberVisitor& visit) {
  visit("weight", weight_);
  visit("bias", bias_);
  visit("running_mean", running_mean_);
  visit("running_var", running_var_);
}

Node BatchNorm2d::operator()(Operand x) {
  const auto call = enter(x);
  Graph& graph = x.node().graph();
  if (graph.mode() == Mode::train) return train(x);
  return batch_norm_inference(x, weight_.in(graph), bias_.in(graph), running_mean_.in(graph),
                              running_var_.in(graph), {.epsilon = options_.epsilon});
}

Node BatchNorm2d::train(Operand x) {
  Graph& graph = x.node().graph();
  const BatchNormResult result =
      batch_norm(x, weight_.in(graph), bias_.in(graph), {.epsilon = options_.epsilon});
  update(running_mean_, result.mean);
  update(running_var_, unbiased(result.variance, x.node()));
  return result.y;
}

void BatchNorm2d::update(Parameter& running, const Node& batch) const {
  Graph& graph = batch.graph();
  const Node old = running.in(graph);
  graph.update(old, old * (1 - options_.momentum) + batch * options_.momentum);
}

}  // namespace plexaura::layers
