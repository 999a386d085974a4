#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/backend.h"
#include "core/host/kernel_source.h"

namespace plexaura {

// The CPU: addresses are host addresses, and each copy or kernel is done when its call returns. Kernels come
// from the kernel sources, in order. A node for which no source offers a kernel runs its op's reference
// kernel. Kernels use OpenMP threads. Convolutions, matmuls, batch norm and pools over images, of float32 and 16 bits, and
// updates and long attentions of float32, may treat denormals as zero; all other kernels keep them. The calling thread's
// own arithmetic does not change, but OpenMP threads that have run such a kernel flush denormals from then on.
std::unique_ptr<Backend> make_cpu_backend();

// Makes a backend for the CPU that has only the portable kernels. All other kernels are tested against it.
std::unique_ptr<Backend> make_portable_backend();

// Returns a text about the library with which make_cpu_backend() computes, such as "oneDNN 2.7.3" or "no
// oneDNN".
std::string cpu_libraries();
// Returns a text about the instruction sets that the kernels of make_cpu_backend() use on this processor, such as
// "x86-64-v3, oneDNN cpu_isa_avx2".
std::string cpu_instructions();

// Returns the sources of kernels of make_cpu_backend(), in the order in which it queries them.
std::vector<std::unique_ptr<const KernelSource>> cpu_kernel_sources();

}  // namespace plexaura
