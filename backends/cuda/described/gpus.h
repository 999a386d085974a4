#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor/dtype.h"

namespace plexaura::cuda::described {

// The properties of a GPU that need not be present.
struct Gpu {
  std::string_view name;       // name as users write it, such as "h200"
  std::string_view full_name;  // such as "NVIDIA H200"
  int capability;              // compute capability, times 100: 900 for 9.0
  int processors;
  std::int64_t memory;           // bytes of memory
  int shared_memory_of_block;    // bytes of shared memory that a block may use
  int cache;                     // bytes of the cache
  double operations_in_16_bits;  // operations per second by tensor cores, as in the next member
  double operations_in_tf32;
  double operations_in_float32;  // operations per second without tensor cores
  double operations_in_float64;
  double bytes_in_a_second;  // bytes of its memory that it reads or writes per second
  // True if the 16-bit speed and the memory's speed were measured. All other speeds are the data sheet's.
  bool measured;
};

// Returns the GPU with this name. Throws UserError if there is none.
const Gpu& find_gpu(std::string_view name);

double operations_in_a_second(const Gpu& gpu, DType dtype, bool tf32);

// Returns a text about the speeds for users, such as "790 TFLOP/s in 16 bits and 4.3 TB/s, as measured". If the
// speeds were not measured, the text ends with "by its data sheet".
std::string speeds_of(const Gpu& gpu);

// Returns the description of the GPU in JSON that cuDNN expects.
std::string json_of(const Gpu& gpu);

}  // namespace plexaura::cuda::described
