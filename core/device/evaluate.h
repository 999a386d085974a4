#pragma once

#include <span>
#include <vector>

#include "core/device/backend.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// Computes one node of a graph with a kernel of the backend, from host tensors to host tensors. Used for
// constant folding. Returns an empty vector if the backend has no kernel for the node, or none with an
// estimate.
PLEXAURA_API std::vector<Tensor> evaluate(Backend& backend, const Graph& graph, NodeId node,
                                          std::span<const Tensor> inputs);

}  // namespace plexaura
