#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/backend.h"
#include "core/host/kernel_source.h"

namespace plexaura {

// The CPU: addresses are host addresses, and each copy or kernel is done when its call returns. Kernels come
// from the sources in order; a node for which no source has an offer runs its op's reference kernel. Threads
// are OpenMP's. Convolutions and matmuls of float32 and 16 bits, and batch norm, pools and updates of float32
// may take denormals for zero; all other kernels keep them. The calling thread's own arithmetic does not
// change, but OpenMP threads that have run such a kernel flush denormals from then on.
std::unique_ptr<Backend> make_cpu_backend();

// The CPU with the portable kernels only. All other kernels are tested against it.
std::unique_ptr<Backend> make_portable_backend();

// Describes the library that make_cpu_backend() computes with, for users: "oneDNN 2.7.3", or "no oneDNN".
std::string cpu_libraries();
// Describes the instruction sets that its kernels use on this processor: "x86-64-v3, oneDNN cpu_isa_avx2".
std::string cpu_instructions();

// The sources of kernels of make_cpu_backend(), in the order in which it queries them.
std::vector<std::unique_ptr<const KernelSource>> cpu_kernel_sources();

}  // namespace plexaura
