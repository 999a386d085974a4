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

// A value for a kernel: device memory without padding, row-major unless the call says otherwise. The address of an output
// that nobody wants is null, and that of an input that the kernel does not read.
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

// Counters that blocks of one launch share: kernels of a branch run one after the other, so that these are theirs in turn.
constexpr std::int64_t most_arrivals = 512;

// What a kernel of an op is called with: it enqueues its work on the stream.
struct Call {
  const Op& op;
  std::span<const View> inputs;
  std::span<const View> outputs;
  runtime::Stream* stream;
  const std::string& name;      // of the launch, which outlives what is enqueued: "matmul %7 of a.cpp:12"
  std::byte* wrong_index;       // a WrongIndex in pinned memory
  bool channels_last = false;   // values [N, C, H, W] lie as [N, H, W, C]
  Address workspace = nullptr;  // as many bytes as workspace_of() says, uninitialised
  Address arrivals = nullptr;   // most_arrivals counters for arrive(), all 0 between two launches
};
using OpKernel = void (*)(const Call& call);

// More than a GPU runs at a time would only wait.
constexpr std::int64_t most_blocks = 4096;

// Blocks for so many sums, each of which one block makes.
inline std::int64_t blocks_of_sums(std::int64_t sums) { return sums < most_blocks ? sums : most_blocks; }

// Blocks for `items` that threads take one by one.
inline std::int64_t blocks_for(std::int64_t items) { return blocks_of_sums((items + threads - 1) / threads); }

#ifdef __CUDACC__

template <class Kernel>
__global__ void run_kernel(const __grid_constant__ Kernel kernel) {
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

// Of the runtime: body(block) for each block, when the stream comes to it. `bytes`: of the values that the kernel is given.
void simulate(const Call& call, std::int64_t blocks, std::size_t bytes,
              std::function<void(Block& block)> body);

template <class Kernel>
void enqueue(const Call& call, std::int64_t blocks, const Kernel& kernel) {
  if (blocks > 0) simulate(call, blocks, bytes_given_to(kernel), [kernel](Block& block) { kernel(block); });
}

#endif

}  // namespace plexaura::cuda
