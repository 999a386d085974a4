#pragma once

#include "core/device/plugin.h"

namespace plexaura::cuda {

// Opens the backend for NVIDIA GPUs. The caller owns it. Throws UserError if an option is unknown or has a
// wrong value, and if there is no such GPU. Options:
//   branches  1, the default: kernels of a recorded step may run side by side; 0: one after another
//   device    the number of the GPU, from 0; by default the ranks of a host take its GPUs in turn
//   fuse      1, the default: a kernel may compute several ops; 0: each op has a kernel of its own
//   tf32      1: libraries may round the factors of products of float32 to TF32; 0, the default: they do not
Backend* open_cuda(const BackendOptions& options);

}  // namespace plexaura::cuda
