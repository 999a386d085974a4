#pragma once

#include <functional>
#include <vector>

#include "backends/cpu/fast/attention/attention_kinds.h"

namespace plexaura::fast {

// Returns the region of `dtype` that ends at this node, if there is one. Other nodes may read its inner values.
std::vector<Region> match_attention(const Graph& graph, NodeId last, const Uses& uses, DType dtype);

// Returns the repeats that let regions hide the scores of the attention whose result is computed by `last`: the gradient
// computes them again, and each region compares its positions itself if it is causal. Returns none if other nodes read
// the scores, the weights or their gradients, or if pays(region) is false for one of the regions.
std::vector<Repeat> attention_repeats(const Graph& graph, NodeId last, const Uses& uses, DType dtype,
                                      const std::function<bool(const Region&)>& pays);

}  // namespace plexaura::fast
