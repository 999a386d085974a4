#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/regions/fused_batch_norm.h"
#include "backends/cuda/regions/fused_row_norm.h"

namespace plexaura::cuda {

// Declares the kernels of ops: one function for each op in kernels.def.
#define PLEXAURA_CUDA_KERNEL(name) void cuda_##name(const Call& call);
#include "backends/cuda/kernels/kernels.def"
// Copies a value from one layout to another. Padding becomes zero.
void enqueue_reorder(const Call& call, const Layout& from, const Layout& to);
// Adds the input, which has one element for each channel, to the output, images [N, C, H, W].
void enqueue_bias(const Call& call);

// Computes a region of batch norm. The call's op is the first one of the region.
void enqueue_batch_norm_region(const Call& call, const FusedBatchNorm& region);
std::size_t batch_norm_region_workspace(const TensorType& x, bool channels_last);

// Computes a region of a normalisation of rows, and one of its gradient.
void enqueue_row_norm(const Call& call, const FusedRowNorm& norm);
void enqueue_row_norm_grad(const Call& call, const FusedRowNorm& norm);
std::size_t row_norm_workspace(const FusedRowNorm& norm, const std::vector<TensorType>& inputs,
                               const std::vector<TensorType>& outputs);

// Returns the kernel of an op. Returns null if there is none.
OpKernel find_kernel(std::string_view op_name);

// True if the op's kernel reads Call::channels_last. Kernels of elementwise ops do not need it.
bool knows_channels_last(std::string_view op_name);

// Returns the bytes of workspace that an op's kernel needs.
std::size_t workspace_of(std::string_view op_name, const std::vector<TensorType>& inputs, bool channels_last);
std::size_t channel_sums_workspace(const TensorType& x, bool channels_last);
std::size_t reduce_workspace(std::int64_t elements);
std::size_t gather_grad_workspace(std::int64_t indices);

}  // namespace plexaura::cuda
