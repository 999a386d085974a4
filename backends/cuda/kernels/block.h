#pragma once

#include <cstddef>
#include <cstdint>

// The language of the kernels in this folder. A kernel is a struct whose call operator is the work of one
// block of threads, in phases: all threads of the block finish a phase before any of them starts the next
// one. The same source compiles for a GPU and, with a plain compiler, to loops that detect indices out of
// bounds and races between threads.
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
//   each_item(count, f)  f(item) for `count` items, which all blocks of the launch share
//   index(), blocks()    the number of this block, and the number of blocks
// arrive(counter, count) returns true for the last of `count` threads, of any blocks, to arrive. That thread
// sees what the earlier ones, and the threads of their blocks in earlier phases, have written. The counter
// must be 0 before, and is 0 again afterwards.
// claim(flag) returns true for the first thread, of all blocks, that raises the flag.
// publish(flag) raises the flag for the host, which then finds in pinned memory what this thread has written
// before.
// Global<T>: elements in the device's memory.
//   values[i]            one of them
//   values.as<Other>(i)  one of them, read as another type
//   values.shared(i)     one of them, for claim(), arrive() and publish() only
//   values.several<n>(i), values.several<n, Other>(i), values.set_several(i, Several<Other, n>)
//                        n of them from i on, by accesses of up to 16 bytes; the address of element i must be
//                        a multiple of the access; Other is the type as which they are read or written
// PLEXAURA_SHARED(block, T, name, size): an array that the threads of one block share.

// PLEXAURA_ROLLED stands before a loop whose code is not repeated, because it mostly makes few rounds.

#ifdef __CUDACC__
#define PLEXAURA_DEVICE __device__
#define PLEXAURA_ROLLED _Pragma("unroll 1")
#ifndef PLEXAURA_HD
#define PLEXAURA_HD __host__ __device__
#endif
#else
#define PLEXAURA_DEVICE
#define PLEXAURA_ROLLED
#ifndef PLEXAURA_HD
#define PLEXAURA_HD
#endif
#endif

namespace plexaura::cuda {

constexpr int threads = 256;  // number of threads of a block

// Consecutive elements that a thread reads or writes at once.
template <class T, int count>
struct alignas(sizeof(T) * count < 16 ? sizeof(T) * count : 16) Several {
  T elements[static_cast<std::size_t>(count)];

  PLEXAURA_HD T& operator[](int i) { return elements[i]; }
  PLEXAURA_HD const T& operator[](int i) const { return elements[i]; }
};

}  // namespace plexaura::cuda

#ifdef __CUDACC__
#include "backends/cuda/kernels/block_of_gpu.h"
#else
#include "backends/cuda/kernels/block_of_host.h"
#endif
