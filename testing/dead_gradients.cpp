#include "testing/dead_gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <fmt/format.h>
#include <map>
#include <set>

#include "core/autodiff/gradients.h"
#include "core/graph/print.h"
#include "core/vm/watch.h"
#include "testing/loss_function.h"
#include "testing/run.h"
#include "testing/wrong_ops.h"

namespace plexaura {

namespace {

using namespace testing;

// Returns the reason why a gradient is dead. Returns an empty text if it is not.
std::string why_dead(const Tensor& gradient) {
  if (!all_finite(gradient)) return "has " + first_bad(gradient);
  return all_zero(gradient) ? "is zero everywhere" : "";
}

// Computes for each node the reason why its gradient is dead; empty if it is not.
std::vector<std::string> states_of(LossFunction& function, const std::vector<Node>& nodes, Backend& backend,
                                   const StepBlock& block) {
  const std::vector<Node> gradients = gradients_or_empty(function.loss, nodes);
  std::vector<Node> wanted;
  for (const Node& gradient : gradients)
    if (!gradient.is_empty()) wanted.push_back(gradient);
  std::vector<Tensor> found;
  if (!wanted.empty()) found = Runner(function.graph, wanted, backend)(function.inputs.values, block);
  std::vector<std::string> states;
  auto next = found.begin();
  for (const Node& gradient : gradients)
    states.push_back(gradient.is_empty() ? "does not exist" : why_dead(*next++));
  return states;
}

// Finds the ops at which gradients end.
class CutSearch {
 public:
  CutSearch(LossFunction& function, std::span<const Node> dead, Backend& backend, const StepBlock& block)
      : graph_(function.graph), path_(nodes_between(dead, std::array{function.loss})) {
    std::set<Value> values;
    for (const NodeId id : path_)
      for (std::uint32_t i = 0; i < graph_.record(id).types.size(); ++i) values.insert({id, i});
    std::vector<Node> nodes;
    for (const NodeId id : path_)
      for (const Value input : graph_.record(id).inputs)
        if (values.erase(input) > 0 && is_floating(graph_.type(input).dtype))
          nodes.emplace_back(function.graph, input);
    const std::vector<std::string> states = states_of(function, nodes, backend, block);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (states[i].empty()) alive_.insert(nodes[i].id());
    alive_.insert(function.loss.id());
  }

  // Returns the first op on the paths from the node to the loss that gets a gradient and passes none on.
  std::string cut_above(NodeId node) const {
    std::deque<NodeId> open{node};
    std::set<NodeId> seen;
    while (!open.empty()) {
      const NodeId below = open.front();
      open.pop_front();
      for (const NodeId id : path_) {
        if (!reads(id, below) || !seen.insert(id).second) continue;
        if (alive_.contains(id)) return name_of(graph_, id);
        open.push_back(id);
      }
    }
    return {};
  }

 private:
  bool reads(NodeId id, NodeId below) const {
    return std::ranges::any_of(graph_.record(id).inputs, [&](Value input) { return input.node == below; });
  }

  const Graph& graph_;
  std::vector<NodeId> path_;
  std::set<NodeId> alive_;  // nodes whose output has a gradient that is not dead
};

}  // namespace

std::string to_string(const DeadGradient& dead) {
  return fmt::format("the gradient of '{}' {}, and the op that makes it so is {}", dead.parameter, dead.what,
                     dead.cut_by);
}

std::vector<DeadGradient> find_dead_gradients(const Node& loss, const std::vector<Feed>& values,
                                              const std::vector<std::string>& parameters, Backend& backend,
                                              const StepBlock& block) {
  LossFunction function(loss, values, parameters, "find_dead_gradients");
  const std::vector<Node> nodes = function.parameter_nodes();
  const std::vector<std::string> states = states_of(function, nodes, backend, block);
  std::vector<DeadGradient> found;
  std::vector<Node> dead;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (states[i].empty()) continue;
    found.push_back({parameters[i], states[i], {}});
    dead.push_back(nodes[i]);
  }
  if (found.empty()) return found;
  const CutSearch search(function, dead, backend, block);
  for (std::size_t i = 0; i < dead.size(); ++i) found[i].cut_by = search.cut_above(dead[i].id());
  return found;
}

}  // namespace plexaura
