#include "models/layers/batch_norm2d.h"

#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"

namespace plexaura::layers {

namespace {

// variance n / (n - 1), where n elements were averaged.
Node unbiased(const Node& variance, const Node& x, std::source_location where) {
  const std::int64_t channels = x.shape()[1];
  const std::int64_t count = channels == 0 ? 0 : x.shape().elements() / channels;
  if (count < 2) return variance;
  return mul({variance, where}, static_cast<double>(count) / static_cast<double>(count - 1));
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
  Graph& graph = x.node().graph();
  const auto scope = scope_in(graph);
  if (graph.mode() == Mode::train) return train(x);
  const auto leaf = [&](const Parameter& parameter) { return parameter.in(graph, x.where()); };
  return batch_norm_inference(x, leaf(weight_), leaf(bias_), leaf(running_mean_), leaf(running_var_),
                              {.epsilon = options_.epsilon});
}

Node BatchNorm2d::train(Operand x) {
  Graph& graph = x.node().graph();
  const auto where = x.where();
  const BatchNormResult result =
      batch_norm(x, weight_.in(graph, where), bias_.in(graph, where), {.epsilon = options_.epsilon});
  update(running_mean_, result.mean, where);
  update(running_var_, unbiased(result.variance, x.node(), where), where);
  return result.y;
}

void BatchNorm2d::update(Parameter& running, const Node& batch, std::source_location where) const {
  Graph& graph = batch.graph();
  const Node old = running.in(graph, where);
  const Node kept = mul({old, where}, 1 - options_.momentum);
  graph.update(old, add({kept, where}, mul({batch, where}, options_.momentum)), where);
}

}  // namespace plexaura::layers
