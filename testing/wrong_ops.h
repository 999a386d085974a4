#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "testing/check_gradients.h"

namespace plexaura::testing {

using CheckFunction =
    std::function<GradientReport(const BuildFunction& build, const std::vector<Tensor>& inputs)>;

// Returns the nodes on the paths from `from` to `to`, in topological order. Does not return `from`.
std::vector<NodeId> nodes_between(std::span<const Node> from, std::span<const Node> to);

// Checks each of these nodes as a function of its own, at the values that it receives if the inputs of the
// graph have the given values. Returns a sentence for each: the first op whose gradient is wrong, ops that
// have a kink there, and each stop_gradient. Returns an empty list if it finds none.
std::vector<std::string> wrong_ops(Graph& graph, const std::vector<NodeId>& nodes,
                                   const std::vector<Tensor>& inputs, const StepBlock& block,
                                   Backend& backend, const CheckFunction& check);

}  // namespace plexaura::testing
