#pragma once

#include <vector>

#include "core/device/backend.h"

// Regions of the gradients of softmax and log_softmax over the last axis. Their inputs are y, which is the result of the
// forward op, and the gradient of y.

namespace plexaura::fast {

inline constexpr auto softmax_grad = "softmax grad";
inline constexpr auto log_softmax_grad = "log_softmax grad";

// Matches y * (grad - sum(grad * y)), the gradient of softmax, that ends at `last`.
std::vector<Region> match_softmax_grad(const Graph& graph, NodeId last);

// Matches grad - e^y * sum(grad), the gradient of log_softmax, that ends at `last`.
std::vector<Region> match_log_softmax_grad(const Graph& graph, NodeId last);

}  // namespace plexaura::fast
