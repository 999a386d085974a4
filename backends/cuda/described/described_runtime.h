#pragma once

#include "backends/cuda/described/gpus.h"
#include "backends/cuda/runtime/runtime.h"
#include "core/device/described_backend.h"

// The functions of runtime.h for a GPU that is not present. The device's memory is host memory, which the
// system provides when it is written. Enqueued work is computed at once. Only in captures, and while an
// account is kept, it is counted instead.

namespace plexaura::cuda::described {

// Sets the GPU that open_device() opens from now on.
void describe(const Gpu& gpu);
const Gpu& described_gpu();
std::size_t most_bytes_used();

// True if work that enters a stream now is counted and not computed.
bool is_counting();
void count(EnqueuedCall call, runtime::Stream* stream);
double seconds_of(double bytes);  // returns the seconds that the GPU's memory takes to read or write `bytes`

void begin_account();
WorkAccount end_account();

}  // namespace plexaura::cuda::described
