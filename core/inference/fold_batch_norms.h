#pragma once

#include <span>

#include "core/base/export.h"
#include "core/compile/passes.h"

namespace plexaura {

// Returns a copy of a graph that predicts, without its batch norms over given moments that follow a conv2d, a
// conv3d, or a matmul of a matrix. The scale of the batch norm is multiplied into the weights, and the rest is
// added as the bias:
//   y = (conv(x, w) + b - mean) inverse scale + shift = conv(x, w f) + (b - mean) f + shift,  f = inverse scale.
// The new weights depend on parameters alone. So the prologue of the program computes them, again only after the
// store has changed. Outputs change by the rounding of float32 or float64.
//
// A batch norm stays if a product that it reads has another reader, if weights or moments depend on more than
// parameters, buffers and constants, or if x has 16 bits. Copies a graph with updates as it is. Do not call it
// for a graph from which gradients are built: the gradients of the parameters would be rounded differently.
PLEXAURA_API PassGraph fold_batch_norms(const Graph& graph, std::span<const Value> roots);

}  // namespace plexaura
