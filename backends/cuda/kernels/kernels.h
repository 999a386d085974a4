#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/fused_batch_norm.h"

namespace plexaura::cuda {

// The kernels of ops: one for each in ops.def.
#define PLEXAURA_OP(name) void cuda_##name(const Call& call);
#include "core/ops/ops.def"
// The copy of a value from one layout to another, with zeros as padding.
void enqueue_reorder(const Call& call, const Layout& from, const Layout& to);
// Adds the input, one element for each channel, to images [N, C, H, W], the output.
void enqueue_bias(const Call& call);

// A region of batch norm, by its inputs and outputs; the call's op is the region's first one.
void enqueue_batch_norm_region(const Call& call, const FusedBatchNorm& region);
std::size_t batch_norm_region_workspace(const Shape& x, bool channels_last);

// Null where there is none.
OpKernel find_kernel(std::string_view op_name);

// Whether the op's kernel looks at Call::channels_last. Those of elementwise ops need not.
bool knows_channels_last(std::string_view op_name);

// Bytes of scratch memory that an op's kernel wants.
std::size_t workspace_of(std::string_view op_name, const std::vector<TensorType>& inputs, bool channels_last);
std::size_t channel_sums_workspace(const Shape& x, bool channels_last);
std::size_t reduce_workspace(std::int64_t elements);
std::size_t gather_grad_workspace(std::int64_t indices);

}  // namespace plexaura::cuda
