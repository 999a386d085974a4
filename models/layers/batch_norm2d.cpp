#include "models/layers/batch_norm2d.h"

#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"

namespace plexaura::layers {

namespace {

// By what the batch's variance is multiplied: n / (n - 1), where n elements were averaged.
double unbiased(const Shape& x) {
  const std::int64_t count = x[1] == 0 ? 0 : x.elements() / x[1];
  return count < 2 ? 1 : static_cast<double>(count) / static_cast<double>(count - 1);
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
  update(running_mean_, result.mean, 1);
  update(running_var_, result.variance, unbiased(x.node().shape()));
  return result.y;
}

// What changes stands last in the sum, so that a step sums it over ranks as it is.
void BatchNorm2d::update(Parameter& running, const Node& batch, double factor) const {
  Graph& graph = batch.graph();
  const Node old = running.in(graph);
  const double share = options_.momentum;
  graph.update(old, old + weighted_sum(batch, share * factor, old, -share));
}

}  // namespace plexaura::layers
