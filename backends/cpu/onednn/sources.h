#pragma once

#include <memory>
#include <string>

#include "core/host/kernel_source.h"

// Kernels of oneDNN: float32, and bfloat16 and float16 where it has fast code for this processor, in the layouts that it
// prefers.

namespace plexaura::onednn {

// conv2d, conv2d_input_grad (+ add), conv2d_weight_grad (+ the bias' gradient).
std::unique_ptr<const KernelSource> make_convolution_source();
// matmul (+ bias).
std::unique_ptr<const KernelSource> make_matmul_source();
// reorder between two layouts.
std::unique_ptr<const KernelSource> make_reorder_source();

// "oneDNN 2.7.3"
std::string version_text();
// What the library makes code for: "oneDNN cpu_isa_avx2".
std::string instruction_set();

}  // namespace plexaura::onednn
