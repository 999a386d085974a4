#pragma once

#include <memory>
#include <string>

#include "core/host/kernel_source.h"

// Kernels of oneDNN, in the layouts that it prefers: for float32, and for bfloat16 and float16 if it has fast
// code for these on this processor.

namespace plexaura::onednn {

// conv2d, conv2d_input_grad (also with an addition), conv2d_weight_grad (also with the bias' gradient).
std::unique_ptr<const KernelSource> make_convolution_source();
// matmul (+ bias).
std::unique_ptr<const KernelSource> make_matmul_source();
// reorder between two layouts.
std::unique_ptr<const KernelSource> make_reorder_source();

// Returns name and version: "oneDNN 2.7.3".
std::string version_text();
// Returns the instruction set for which the library generates code: "oneDNN cpu_isa_avx2".
std::string instruction_set();

}  // namespace plexaura::onednn
