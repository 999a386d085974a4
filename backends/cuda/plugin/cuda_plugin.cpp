// The plugin for NVIDIA GPUs.

#include "backends/cuda/cuda_backend.h"

PLEXAURA_PLUGIN(plexaura::cuda::open_cuda)
