#pragma once

#include "core/device/host_kernel.h"

// The portable kernels: one plain function per op of ops.def, for every dtype that the op allows. They are
// the oracle for all other kernels, the float64 path, and what the CPU backend falls back to. 16-bit floats
// are computed and added up in float, sums of float32 in double. An output whose data is null is skipped.
// Nothing is allocated.

namespace plexaura {

#define PLEXAURA_OP(name) void portable_##name(const HostCall& call);
#include "core/ops/ops.def"

// Registers all of them with register_host_kernel. May be called any number of times, from any thread.
void register_portable_kernels();

}  // namespace plexaura
