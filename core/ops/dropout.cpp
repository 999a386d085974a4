#include "core/ops/dropout.h"

#include <fmt/format.h>

#include "core/graph/graph.h"
#include "core/loops/types.h"
#include "core/ops/draws.h"
#include "core/ops/elementwise.h"

namespace plexaura {

namespace {

bool is_probability(double p) { return p >= 0 && p < 1; }

void require_probability(double p) {
  if (!is_probability(p))
    throw RuleError(fmt::format("the probability must be at least 0 and less than 1, not {}", p));
}

}  // namespace

std::vector<TensorType> DropoutOp::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  require_floating(inputs[0]);
  require_probability(options().p);
  if (inputs[1] != TensorType{DType::int64, Shape{3}})
    throw RuleError("the second operand must be the step scalar 'random'");
  return {inputs[0], {DType::boolean, inputs[0].shape}};
}

std::vector<Node> DropoutOp::vjp(const VjpRequest& request) const {
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
  return apply(std::make_shared<DropoutOp>(DropoutDraws{options, graph.next_stream()}),
               {x, Operand(random, x.where())});
}

Node dropout_grad(Operand grad_out, Operand mask, double p) {
  return apply(std::make_shared<DropoutGrad>(DropoutGradOptions{p}), {grad_out, mask});
}

namespace {

using namespace portable;

template <class T>
void forward(const HostCall& call, const DropoutDraws& options) {
  const auto* random = call.inputs[1].as<std::int64_t>();
  const philox::Draws draws(random[0], random[1], options.stream);
  const std::int64_t first = first_index(call.inputs[0].shape(), options.batch, random[2]);
  const auto dropped_below = static_cast<std::uint64_t>(options.p * 4294967296.0);
  const auto scale = static_cast<Compute<T>>(1 / (1 - options.p));
  const T* src = call.inputs[0].as<T>();
  T* dst = call.outputs[0].as<T>();
  bool* mask = call.outputs[1].as<bool>();
  parallel_pieces(call.inputs[0].elements(), 20, [&](std::int64_t begin, std::int64_t end) {
    for_each_draw(draws, first, begin, end,
                  [&](std::int64_t i, const philox::Block& block, std::int64_t lane) {
                    const bool kept = block.words[lane] >= dropped_below;
                    if (dst != nullptr) dst[i] = kept ? T(static_cast<Compute<T>>(src[i]) * scale) : T(0);
                    if (mask != nullptr) mask[i] = kept;
                  });
  });
}

}  // namespace

void DropoutOp::compute(const HostCall& call) const {
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { forward<T>(call, options()); });
}

void DropoutGrad::compute(const HostCall& call) const {
  if (call.outputs[0].data == nullptr) return;
  const double scale = 1 / (1 - options().p);
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const T* diff_dst = call.inputs[0].as<T>();
    const bool* mask = call.inputs[1].as<bool>();
    T* diff_src = call.outputs[0].as<T>();
    parallel_pieces(call.inputs[0].elements(), 1, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        diff_src[i] =
            mask[i] ? T(static_cast<Compute<T>>(diff_dst[i]) * static_cast<Compute<T>>(scale)) : T(0);
    });
  });
}

}  // namespace plexaura
