#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "backends/cuda/kernels/block.h"
#include "backends/cuda/runtime/launch_check.h"
#include "backends/cuda/runtime/runtime.h"
#include "core/device/backend.h"
#include "core/graph/op.h"

namespace plexaura::cuda {

// A value that a kernel reads or writes: device memory without padding, row-major unless the call says
// otherwise. The address is null for an output that no one reads and for an input that the kernel does not
// read.
struct View {
  Address address = nullptr;
  const TensorType* type = nullptr;

  const Shape& shape() const { return type->shape; }
  DType dtype() const { return type->dtype; }
  std::int64_t elements() const { return type->shape.elements(); }

  template <class T>
  Global<const T> in() const {
    return {address, elements()};
  }
  template <class T>
  Global<T> out() const {
    return {address, elements()};
  }
};

// The number of counters that the blocks of a launch share. Kernels of a branch run one after another, so
// they can use the same counters.
constexpr std::int64_t most_arrivals = 512;

// The arguments of a kernel of an op, which enqueues its work on the stream.
struct Call {
  const Op& op;
  std::span<const View> inputs;
  std::span<const View> outputs;
  runtime::Stream* stream;
  const std::string& name;  // name of the launch, such as "matmul %7 of a.cpp:12"; outlives the enqueued work
  std::byte* wrong_index;   // address of a WrongIndex in pinned memory
  bool channels_last = false;   // values [N, C, H, W] are stored as [N, H, W, C]
  Address workspace = nullptr;  // workspace_of() bytes of memory, uninitialised
  Address arrivals = nullptr;   // address of most_arrivals counters for arrive(), all 0 between two launches
};
using OpKernel = void (*)(const Call& call);

// The largest number of blocks of a launch. On a GPU, more blocks would only wait for each other.
constexpr std::int64_t most_blocks = 4096;

// Returns the number of blocks for kernels in which one block computes one sum.
inline std::int64_t blocks_of_sums(std::int64_t sums) { return sums < most_blocks ? sums : most_blocks; }

// Returns the number of blocks for `items` that threads take one by one.
inline std::int64_t blocks_for(std::int64_t items) { return blocks_of_sums((items + threads - 1) / threads); }

#ifdef __CUDACC__

template <class Kernel>
__global__ void run_kernel(const __grid_constant__ Kernel kernel) {
  Block block;
  kernel(block);
}

// A kernel that says how many of its blocks a multiprocessor has to run at once, which limits its registers.
template <class Kernel>
concept LimitsRegisters = requires {
  Kernel::blocks_at_once;
};

template <LimitsRegisters Kernel>
__global__ void __launch_bounds__(threads, Kernel::blocks_at_once)
    run_kernel(const __grid_constant__ Kernel kernel) {
  Block block;
  kernel(block);
}

template <class Kernel>
void enqueue(const Call& call, std::int64_t blocks, const Kernel& kernel) {
  if (blocks == 0) return;
  run_kernel<<<static_cast<unsigned>(blocks), threads, 0, reinterpret_cast<cudaStream_t>(call.stream)>>>(
      kernel);
  check_launch(call.name);
}

#else

// Calls body(block) for each block when the stream reaches this work. `bytes` is the size of all values that
// the kernel uses. The function is a part of the runtime.
void simulate(const Call& call, std::int64_t blocks, std::size_t bytes,
              std::function<void(Block& block)> body);

template <class Kernel>
void enqueue(const Call& call, std::int64_t blocks, const Kernel& kernel) {
  if (blocks > 0) simulate(call, blocks, bytes_given_to(kernel), [kernel](Block& block) { kernel(block); });
}

#endif

}  // namespace plexaura::cuda
