#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor/dtype.h"

namespace plexaura::cuda::described {

// A GPU that need not be there.
struct Gpu {
  std::string_view name;       // "h200", as users write it
  std::string_view full_name;  // "NVIDIA H200"
  int capability;              // 900: 9.0
  int processors;
  std::int64_t memory;           // bytes
  int shared_memory_of_block;    // bytes
  int cache;                     // bytes
  double operations_in_16_bits;  // in a second, by tensor cores, as those that follow
  double operations_in_tf32;
  double operations_in_float32;  // without tensor cores
  double operations_in_float64;
  double bytes_in_a_second;  // that its memory reads and writes
  bool measured;             // the 16-bit and the memory's speed; otherwise all are the data sheet's
};

// UserError in one sentence for a name that none has.
const Gpu& find_gpu(std::string_view name);

double operations_in_a_second(const Gpu& gpu, DType dtype, bool tf32);

// "790 TFLOP/s in 16 bits and 4.3 TB/s, measured"
std::string speeds_of(const Gpu& gpu);

// As cuDNN wants a GPU to be described.
std::string json_of(const Gpu& gpu);

}  // namespace plexaura::cuda::described
