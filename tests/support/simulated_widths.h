#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace plexaura::testing {

// Returns for each op of the graph the most elements that a thread of simulated CUDA used at once. Ops are not
// fused.
std::map<std::string, int> widths_of(const Graph& graph, const std::vector<Node>& results,
                                     const std::vector<Tensor>& inputs);

}  // namespace plexaura::testing
