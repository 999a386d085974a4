#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/backend.h"
#include "core/host/kernel_source.h"

namespace plexaura {

// The CPU: addresses are host addresses, and copies and kernels are done when the call returns. Kernels come
// from the sources in order; where none has an offer, from the portable host kernels. Threads are OpenMP's.
// Convolutions and matmuls of float32 and 16 bits, and batch norm, pools and updates of float32 may take denormals for zero; all other kernels keep
// them. The calling thread's own arithmetic stays as it is, but the OpenMP threads that kernels have used flush
// denormals from then on.
std::unique_ptr<Backend> make_cpu_backend();

// The CPU with the portable kernels alone: the oracle for all others.
std::unique_ptr<Backend> make_portable_backend();

// What make_cpu_backend() computes with, for people: "oneDNN 2.7.3", or "no oneDNN".
std::string cpu_libraries();
// What its kernels are made of here: "x86-64-v3, oneDNN cpu_isa_avx2".
std::string cpu_instructions();

// The sources of make_cpu_backend(), in the order in which they are asked.
std::vector<std::unique_ptr<const KernelSource>> cpu_kernel_sources();

}  // namespace plexaura
