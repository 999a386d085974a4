#pragma once

#include <optional>

#include "backends/cpu/onednn/convolution_layouts.h"
#include "core/device/backend.h"

namespace plexaura::onednn {

// The functions take convolutions over two axes, conv2d and its gradients, and those over three.

// Return a candidate in these layouts. Return nothing, or throw dnnl::error, if the layouts do not fit the shapes, if
// the library has no fast kernel for them, or if it chooses layouts that a Layout cannot express.
std::optional<Candidate> propose_convolution(const RegionQuery& query, ConvolutionLayouts layouts);
std::optional<Candidate> propose_input_grad(const RegionQuery& query, ConvolutionLayouts layouts);
std::optional<Candidate> propose_weight_grad(const RegionQuery& query, ConvolutionLayouts layouts);

// Proposes the gradient by the input with an addition. The region's inputs are weights, grad_out and addend. A
// convolution with a window of one element and stride 1 has an input gradient that is a forward convolution with the transposed weights,
// and a forward convolution can add to its destination.
std::optional<Candidate> propose_input_grad_and_add(const RegionQuery& query, ConvolutionLayouts layouts);

}  // namespace plexaura::onednn
