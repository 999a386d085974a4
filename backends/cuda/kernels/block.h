#pragma once

#include <cstdint>

// The language of the kernels in this folder. A kernel is a struct whose call operator is what one block of threads
// does, in phases: all threads of the block finish a phase before any starts the next. So the same source is code for a
// GPU, and under a plain compiler loops that find an index out of bounds and threads that race.
//
//   struct Twice {
//     Global<const float> src;
//     Global<float> dst;
//     PLEXAURA_DEVICE void operator()(Block& block) const {
//       block.each_item(dst.count(), [&](std::int64_t i) { dst[i] = 2 * src[i]; });
//     }
//   };
//
// Block:
//   each_thread(f)       a phase: f(thread) for the threads 0 .. threads - 1 of this block
//   each_item(count, f)  f(item) for items that all blocks of the launch share out
//   index(), blocks()    of this block; of all
// arrive(counter, count): whether this thread is the last of `count`, of any blocks, to arrive. It sees what those before it,
// and the threads of their blocks in earlier phases, have written, and the counter, which was 0, is 0 again.
// claim(flag): whether this thread is the first, of all blocks, to raise it.
// publish(flag): raises it for the host, which then finds in pinned memory what this thread has written before.
// Global<T>: elements in the device's memory.
//   values[i]            one of them
//   values.as<Other>(i)  one of those of another type that lie there
//   values.shared(i)     one for claim(), arrive() and publish() alone
// PLEXAURA_SHARED(block, T, name, size): an array that the threads of one block share.

#ifdef __CUDACC__
#define PLEXAURA_DEVICE __device__
#ifndef PLEXAURA_HD
#define PLEXAURA_HD __host__ __device__
#endif
#else
#define PLEXAURA_DEVICE
#ifndef PLEXAURA_HD
#define PLEXAURA_HD
#endif
#endif

namespace plexaura::cuda {

constexpr int threads = 256;  // of a block

}  // namespace plexaura::cuda

#ifdef __CUDACC__
#include "backends/cuda/kernels/block_of_gpu.h"
#else
#include "backends/cuda/kernels/block_of_host.h"
#endif
