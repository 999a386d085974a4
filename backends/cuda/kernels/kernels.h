#pragma once

#include <string_view>

#include "backends/cuda/kernels/call.h"

namespace plexaura::cuda {

// The kernels of ops: one for each in ops.def.
#define PLEXAURA_OP(name) void cuda_##name(const Call& call);
#include "core/ops/ops.def"
// The copy of a value from one layout to another, with zeros as padding.
void enqueue_reorder(const Call& call, const Layout& from, const Layout& to);
// Adds the input, one element for each channel, to images [N, C, H, W], the output.
void enqueue_bias(const Call& call);

// Null where there is none.
OpKernel find_kernel(std::string_view op_name);

}  // namespace plexaura::cuda
