#pragma once

#include <optional>

#include "core/graph/graph.h"

namespace plexaura::onnx {

// Computes a node by the reference kernels of the ops that it is made of. Returns nothing if it depends on a leaf
// that is not a constant, on a random op or on one without a reference kernel, or if a value on the way has more
// than 64 MiB.
std::optional<Tensor> evaluate_known(const Node& node);

}  // namespace plexaura::onnx
