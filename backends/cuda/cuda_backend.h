#pragma once

#include "core/device/plugin.h"

namespace plexaura::cuda {

// The backend for GPUs. UserError for an option that is unknown or has a wrong value, and where there is no such GPU. Owned by
// the caller. Options:
//   device  the number of the GPU, from 0; without it, the ranks of a host take its GPUs in turn
//   fuse    1, the default: a kernel may compute several ops; 0: each op has a kernel of its own
//   tf32    1: the libraries may round the factors of products in float32 to TF32; 0, the default: they may not
Backend* open_cuda(const BackendOptions& options);

}  // namespace plexaura::cuda
