#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace plexaura::testing {

// Returns for each launch of the graph the most elements that a thread of simulated CUDA used at once, by the name of its
// last op. Ops are fused only if `fuse` is true.
std::map<std::string, int> widths_of(const Graph& graph, const std::vector<Node>& results,
                                     const std::vector<Tensor>& inputs, bool fuse = false);

}  // namespace plexaura::testing
