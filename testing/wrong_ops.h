#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "testing/check_gradients.h"

namespace plexaura::testing {

using CheckFunction =
    std::function<GradientReport(const BuildFunction& build, const std::vector<Tensor>& inputs)>;

// The nodes on the ways from some nodes to others, in order, without those from which they start.
std::vector<NodeId> nodes_between(std::span<const Node> from, std::span<const Node> to);

// Checks each of these nodes of a graph as a function of its own, at the values that it meets when the inputs of the
// graph have the given values. In words, one for each: the first op whose gradient is wrong, ops that have a kink there,
// and each stop_gradient. Empty where nothing is found.
std::vector<std::string> wrong_ops(Graph& graph, const std::vector<NodeId>& nodes,
                                   const std::vector<Tensor>& inputs, const StepBlock& block,
                                   Backend& backend, const CheckFunction& check);

}  // namespace plexaura::testing
