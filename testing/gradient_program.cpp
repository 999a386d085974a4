#include "testing/gradient_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"

namespace plexaura::testing {

Node GraphInputs::add(Graph& graph, std::string label, Tensor value) {
  nodes.push_back(graph.input(label, value.type()));
  values.push_back(std::move(value));
  labels.push_back(std::move(label));
  return nodes.back();
}

GradientProgram::GradientProgram(Graph& graph, GraphInputs& inputs, std::vector<Node> outputs,
                                 const Asking& asking, Random& random, Backend& backend)
    : variables_(inputs.nodes.size()),
      inputs_(inputs.nodes),
      labels_(inputs.labels),
      outputs_(std::move(outputs)) {
  for (const Node& output : outputs_)
    cotangents_.push_back(inputs.add(graph,
                                     fmt::format("{} {}", asking.label_of_cotangents, cotangents_.size()),
                                     random.tensor(output.type(), -1, 1)));
  std::vector<bool> every_variable;
  std::vector<std::size_t> variables;
  for (std::size_t i = 0; i < variables_; ++i) {
    every_variable.push_back(is_floating(inputs_[i].dtype()));
    if (every_variable[i]) variables.push_back(i);
  }
  const std::vector<bool> every_output(outputs_.size(), true);
  ask({"", every_variable, every_output, {}});
  ask_for_some(variables, asking.most_with_all_subsets);
  for (std::size_t i = 0; i < outputs_.size() && outputs_.size() > 1; ++i) {
    std::vector<bool> others = every_output;
    others[i] = false;
    ask({fmt::format("without a cotangent of output {}", i), every_variable, others, {}});
  }
  std::vector<Node> wanted;
  for (const Way& way : ways_)
    for (const Node& grad : way.grads)
      if (!grad.is_empty()) wanted.push_back(grad);
  if (!wanted.empty()) runner_ = std::make_unique<Runner>(graph, wanted, backend);
}

void GradientProgram::ask_for_some(const std::vector<std::size_t>& variables,
                                   std::size_t most_with_all_subsets) {
  const std::size_t count = variables.size();
  for (const std::size_t variable : variables) ask_for({variable});
  if (most_with_all_subsets < 2 || count < 3) return;
  if (count > most_with_all_subsets) {
    for (const std::size_t left_out : variables) {
      std::vector<std::size_t> others = variables;
      std::erase(others, left_out);
      ask_for(others);
    }
    return;
  }
  for (std::size_t set = 1; set + 1 < std::size_t{1} << count; ++set) {
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < count; ++i)
      if ((set >> i & 1) != 0) some.push_back(variables[i]);
    if (some.size() > 1) ask_for(some);
  }
}

void GradientProgram::ask_for(const std::vector<std::size_t>& variables) {
  std::vector<bool> wanted(variables_, false);
  std::vector<std::string_view> labels;
  for (const std::size_t variable : variables) {
    wanted[variable] = true;
    labels.emplace_back(labels_[variable]);
  }
  ask({labels.size() == 1 ? "wanted alone" : fmt::format("with {} alone wanted", fmt::join(labels, ", ")),
       wanted,
       std::vector<bool>(outputs_.size(), true),
       {}});
}

void GradientProgram::ask(Way way) {
  Node loss;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (!way.outputs[i]) continue;
    const Node part = plexaura::sum(outputs_[i] * cotangents_[i]);
    loss = loss.is_empty() ? part : loss + part;
  }
  std::vector<Node> wrt;
  for (std::size_t i = 0; i < variables_; ++i)
    if (way.variables[i]) wrt.push_back(inputs_[i]);
  const std::vector<Node> grads = gradients_or_empty(loss, wrt);
  auto next = grads.begin();
  for (std::size_t i = 0; i < variables_; ++i) way.grads.push_back(way.variables[i] ? *next++ : Node());
  ways_.push_back(std::move(way));
}

std::vector<double> GradientProgram::random_cotangents(Random& random) const {
  std::vector<double> values;
  for (const Node& output : outputs_)
    for (std::int64_t i = 0; i < output.shape().elements(); ++i) values.push_back(random.between(-1, 1));
  return values;
}

std::vector<Derivatives> GradientProgram::derive(std::vector<Tensor> inputs,
                                                 const std::vector<double>& cotangents,
                                                 const StepBlock& block) {
  auto next = cotangents.begin();
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    for (double& element : inputs[variables_ + i].as<double>()) element = *next++;
  std::vector<Tensor> results;
  if (runner_) results = (*runner_)(inputs, block);
  auto result = results.begin();
  std::vector<Derivatives> all;
  for (const Way& way : ways_) {
    Derivatives& derivatives = all.emplace_back(variables_);
    for (std::size_t i = 0; i < variables_; ++i) {
      if (!way.grads[i].is_empty())
        derivatives[i] = (result++)->to_doubles();
      else if (way.variables[i])
        derivatives[i].assign(static_cast<std::size_t>(inputs[i].elements()), 0.0);
    }
  }
  return all;
}

}  // namespace plexaura::testing
