#pragma once

#include <span>
#include <vector>

#include "core/device/backend.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// Computes one node of a graph with a kernel of the backend, from host tensors to host tensors: what constant
// folding needs. Empty where the backend has no kernel for it.
PLEXAURA_API std::vector<Tensor> evaluate(Backend& backend, const Graph& graph, NodeId node,
                                          std::span<const Tensor> inputs);

}  // namespace plexaura
