#pragma once

#include <optional>

#include "backends/cpu/onednn/convolution_layouts.h"
#include "core/device/backend.h"

namespace plexaura::onednn {

// Each is empty where the library has nothing fast in these layouts, or throws dnnl::error.
std::optional<Candidate> propose_conv2d(const RegionQuery& query, ConvolutionLayouts layouts);
std::optional<Candidate> propose_input_grad(const RegionQuery& query, ConvolutionLayouts layouts);
std::optional<Candidate> propose_weight_grad(const RegionQuery& query, ConvolutionLayouts layouts);

// Region inputs: weights, grad_out, addend. A 1x1 convolution of stride 1 goes back as a forward convolution
// of the transposed weights, and that one can add to its destination.
std::optional<Candidate> propose_input_grad_and_add(const RegionQuery& query, ConvolutionLayouts layouts);

}  // namespace plexaura::onednn
