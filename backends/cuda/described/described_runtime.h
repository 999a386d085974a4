#pragma once

#include "backends/cuda/described/gpus.h"
#include "backends/cuda/runtime/runtime.h"
#include "core/device/described_backend.h"

// The functions of runtime.h for a GPU that is not there. Memory of the device is the host's, and comes to be where it is
// written. What is enqueued is computed at once, but for what is captured or while an account is kept: that is counted.

namespace plexaura::cuda::described {

// The GPU that open_device() finds from now on.
void describe(const Gpu& gpu);
const Gpu& described_gpu();
std::size_t most_bytes_used();

// Whether what enters a stream now is only counted.
bool is_counting();
void count(EnqueuedCall call, runtime::Stream* stream);
double seconds_of(double bytes);  // that its memory needs to read or write them

void begin_account();
WorkAccount end_account();

}  // namespace plexaura::cuda::described
