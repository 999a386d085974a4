#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor/dtype.h"

namespace plexaura::cuda::described {

// The properties of a GPU that need not be present.
struct Gpu {
  std::string_view name;       // "h200", as users write it
  std::string_view full_name;  // "NVIDIA H200"
  int capability;              // compute capability: 900 for 9.0
  int processors;
  std::int64_t memory;           // in bytes
  int shared_memory_of_block;    // in bytes
  int cache;                     // in bytes
  double operations_in_16_bits;  // per second, by tensor cores; the next one too
  double operations_in_tf32;
  double operations_in_float32;  // without tensor cores
  double operations_in_float64;
  double bytes_in_a_second;  // speed of its memory, reads and writes
  // True if the 16-bit speed and the memory's speed were measured. All other speeds are the data sheet's.
  bool measured;
};

// Returns the GPU of this name. Throws UserError if there is none.
const Gpu& find_gpu(std::string_view name);

double operations_in_a_second(const Gpu& gpu, DType dtype, bool tf32);

// Describes the speeds for users: "790 TFLOP/s in 16 bits and 4.3 TB/s, measured".
std::string speeds_of(const Gpu& gpu);

// Describes the GPU in the JSON that cuDNN expects.
std::string json_of(const Gpu& gpu);

}  // namespace plexaura::cuda::described
