#include "core/autodiff/custom_gradient.h"

#include <cstring>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/graph/op.h"
#include "core/graph/print.h"

namespace plexaura {

namespace {

// The op of custom_gradient(). Its output is its first input. The gradients of the other inputs are what the
// user's backward function builds.
class CustomGradient final : public OpOf<CustomGradient> {
 public:
  explicit CustomGradient(std::size_t inputs, BackwardBuilder backward)
      : inputs_(inputs), backward_(std::move(backward)) {}

  std::string_view name() const override { return "custom_gradient"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }

  std::vector<Node> vjp(const VjpRequest& request) const override {
    const Node& output = request.outputs[0];
    const CustomGradientRequest given{
        {request.inputs.begin() + 1, request.inputs.end()}, output, request.grad_outputs[0]};
    std::vector<Node> grads = backward_(given);
    const auto refuse = [&](const std::string& rule) {
      throw UserError(fmt::format("{}: the backward builder {}", name_of(output.graph(), output.id()), rule));
    };
    if (grads.size() != inputs_)
      refuse(fmt::format("returned {} gradients for {} inputs; return one for each, an empty Node for zero",
                         grads.size(), inputs_));
    for (const Node& grad : grads)
      if (!grad.is_empty() && &grad.graph() != &output.graph())
        refuse("returned a node of another graph; use only the nodes that it gets");
    grads.insert(grads.begin(), Node());
    return grads;
  }

  void compute(const HostCall& call) const {
    const HostView& from = call.inputs[0];
    if (from.elements() > 0 && call.outputs[0].data != nullptr)
      std::memcpy(call.outputs[0].data, from.data,
                  static_cast<std::size_t>(from.elements()) * size_of(from.dtype()));
  }

  OpTraits traits() const override {
    OpTraits traits{.view = true, .precision = Precision::follows};
    for (std::size_t i = 1; i <= inputs_; ++i) traits.unread_inputs.push_back(i);
    return traits;
  }

 private:
  std::size_t inputs_;
  BackwardBuilder backward_;
};

}  // namespace

Node custom_gradient(const std::vector<Node>& inputs, const RegionBuilder& forward, BackwardBuilder backward,
                     std::source_location where) {
  if (inputs.empty())
    throw UserError(fmt::format("{}: custom_gradient: there is no input; pass the nodes that get a gradient",
                                to_string(Origin::at(where))));
  Graph& graph = inputs[0].graph();
  const auto check = [&](const Node& node, const char* what) {
    if (&node.graph() != &graph)
      throw UserError(fmt::format("{}: custom_gradient: {} belongs to another graph than the first input",
                                  to_string(graph.origin_of(where)), what));
  };
  for (const Node& input : inputs) check(input, "an input");
  std::vector<Node> operands{forward(inputs)};
  check(operands[0], "the result");
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  return graph.append(std::make_shared<CustomGradient>(inputs.size(), std::move(backward)), operands,
                      where)[0];
}

}  // namespace plexaura
