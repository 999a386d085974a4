#include "core/ops/dropout.h"

#include <fmt/format.h>

#include "core/graph/graph.h"
#include "core/ops/elementwise.h"

namespace plexaura {

namespace {

bool is_probability(double p) { return p >= 0 && p < 1; }

void require_probability(double p) {
  if (!is_probability(p))
    throw RuleError(fmt::format("the probability must be at least 0 and less than 1, not {}", p));
}

}  // namespace

std::vector<TensorType> Dropout::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_floating(inputs[0]);
  require_probability(options().p);
  if (inputs[1] != TensorType{DType::int64, Shape{3}})
    throw RuleError("the second operand must be the step scalar 'random'");
  return {inputs[0], {DType::boolean, inputs[0].shape}};
}

std::vector<Node> Dropout::vjp(const VjpRequest& request) const {
  return {dropout_grad(request.grad_outputs[0], request.outputs[1], options().p), Node()};
}

std::vector<TensorType> DropoutGrad::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_floating(inputs[0]);
  require_probability(options().p);
  if (inputs[1] != TensorType{DType::boolean, inputs[0].shape})
    throw RuleError("the mask must be bool of the gradient's shape: output 1 of dropout");
  return {inputs[0]};
}

std::vector<Node> DropoutGrad::vjp(const VjpRequest& request) const {
  return {dropout_grad(request.grad_outputs[0], request.inputs[1], options().p), Node()};
}

Node dropout(Operand x, DropoutOptions options) {
  const Node node = x.node();
  Graph& graph = node.graph();
  const bool keeps_all = graph.mode() == Mode::inference || options.p == 0;
  if (keeps_all && is_probability(options.p)) return node;
  const Node random = graph.step_scalar(StepScalar::random, DType::int64, x.where());
  return apply(std::make_shared<Dropout>(DropoutDraws{options, graph.next_stream()}),
               {x, Operand(random, x.where())});
}

Node dropout_grad(Operand grad_out, Operand mask, double p) {
  return apply(std::make_shared<DropoutGrad>(DropoutGradOptions{p}), {grad_out, mask});
}

}  // namespace plexaura
