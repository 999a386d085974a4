#pragma once

#include <memory>
#include <string>

#include "core/host/kernel_source.h"

// Our own vectorised kernels. Most take several dtypes. Batch norm, updates, dropout, products of small matrices and
// Winograd's convolutions take only float32, and make_widened_source() some of these in 16 bits. Some kernels need row-major
// operands. The others work in the layouts in which their operands arrive.

namespace plexaura::fast {

// Returns the generation of processors whose version of the loops runs here: "x86-64-v3", or "avx2" if clang compiled
// them; "baseline" if there is no such version for this processor.
std::string instruction_set();

// Elementwise functions of one, two or three values, in any layout and with any broadcasting.
std::unique_ptr<const KernelSource> make_elementwise_source();
// Regions of several elementwise ops whose results have one shape.
std::unique_ptr<const KernelSource> make_chain_source();
// Reorders, from a layout to the same or another one.
std::unique_ptr<const KernelSource> make_transfer_source();
// The ops permute, slice and its gradient, concat, of any dtype.
std::unique_ptr<const KernelSource> make_move_source();
// Regions of the gradients of gelu, silu and hard_swish, of float32 or float64.
std::unique_ptr<const KernelSource> make_slope_source();
// Regions of elementwise ops around slices of the last axis, computed row by row.
std::unique_ptr<const KernelSource> make_row_chain_source();
// The ops gather, take_along_axis and their gradients, scatter.
std::unique_ptr<const KernelSource> make_index_source();
// The ops sgd_step, adam_step and rms_step.
std::unique_ptr<const KernelSource> make_optimizer_source();
// Batch norm: its ops and regions.
std::unique_ptr<const KernelSource> make_batch_norm_source();
// The op matmul for two small matrices, also with a bias.
std::unique_ptr<const KernelSource> make_small_matmul_source();
// The op matmul for float64 or float32, in blocks for the caches.
std::unique_ptr<const KernelSource> make_block_matmul_source(DType dtype);
// The op conv2d with windows of 3x3 and stride 1, and its gradient by the source, by Winograd's transforms. Only
// measurements choose these kernels.
std::unique_ptr<const KernelSource> make_winograd_source();
// The gradient of the weights of such a convolution, also with the one of its bias. Only measurements choose it.
std::unique_ptr<const KernelSource> make_winograd_weight_grad_source();
// The ops conv2d, conv3d and their gradients, of float64.
std::unique_ptr<const KernelSource> make_double_convolution_source();
// The ops max_pool2d, avg_pool2d and their gradients, of float64 or float32.
std::unique_ptr<const KernelSource> make_pool_source(DType dtype);
// The ops max_pool3d, avg_pool3d, also adaptive ones, and their gradients.
std::unique_ptr<const KernelSource> make_pool3d_source();
// The ops sum, mean, max and min.
std::unique_ptr<const KernelSource> make_reduce_source();
// The op argmax along another axis than the last one.
std::unique_ptr<const KernelSource> make_argmax_source();
// The ops softmax_cross_entropy with its gradient, top_k_correct and one_hot.
std::unique_ptr<const KernelSource> make_class_source();
// The ops softmax and log_softmax over any axis, and their gradients over the last axis.
std::unique_ptr<const KernelSource> make_softmax_source();
// Regions of scaled_dot_product_attention and its gradient, of float64 or float32.
std::unique_ptr<const KernelSource> make_attention_source(DType dtype);
// Regions of layer_norm, group_norm, instance_norm, standardise, rms_norm and their gradients.
std::unique_ptr<const KernelSource> make_row_norm_source();
// The op normalise_image.
std::unique_ptr<const KernelSource> make_image_source();
// The op dropout and its gradient.
std::unique_ptr<const KernelSource> make_dropout_source();
// The ops uniform and normal.
std::unique_ptr<const KernelSource> make_random_source();

// Offers the kernels that `source` has for float32 to regions of bfloat16 and float16. Such a kernel converts its
// operands of 16 bits to float32 in its workspace, computes there, and rounds each result once to 16 bits. It takes
// little longer than the kernel of float32. `source` must say which kinds of regions it knows, none of which may contain
// a cast.
std::unique_ptr<const KernelSource> make_widened_source(std::unique_ptr<const KernelSource> source);

}  // namespace plexaura::fast
