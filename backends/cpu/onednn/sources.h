#pragma once

#include <memory>
#include <string>

#include "core/host/kernel_source.h"

// Kernels of oneDNN, in the layouts that it prefers and in a few others: for float32, for bfloat16 and float16 if it
// has fast code for these on this processor, and reorders also of int32 and uint8.

namespace plexaura::onednn {

// Makes the source of convolutions over two and three axes: conv2d, conv2d_input_grad (also with an addition) and
// conv2d_weight_grad (also with the gradient of the bias), and conv3d with the same gradients.
std::unique_ptr<const KernelSource> make_convolution_source();
// Makes the source of matrix products: matmul, also with a bias.
std::unique_ptr<const KernelSource> make_matmul_source();
// Makes the source of reorders between two layouts.
std::unique_ptr<const KernelSource> make_reorder_source();

// Returns the library's name and version, such as "oneDNN 2.7.3".
std::string version_text();
// Returns the instruction set for which the library generates code, such as "oneDNN cpu_isa_avx2".
std::string instruction_set();

}  // namespace plexaura::onednn
