#include "backends/cuda/described/gpus.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "core/base/error.h"

namespace plexaura::cuda::described {

namespace {

// Speeds are those of the SXM models. Where `measured` is set, two of them were measured: the 16-bit speed,
// by a product of bfloat16 matrices [8192, 8192], and the memory's speed, by a copy within it, counting the
// bytes read and written. All others are the data sheets' for dense matrices.
constexpr Gpu gpus[] = {
    {"a100", "NVIDIA A100", 800, 108, 85'899'345'920, 166912, 41943040, 312e12, 156e12, 19.5e12, 19.5e12,
     2.039e12, false},
    {"h100", "NVIDIA H100", 900, 132, 85'520'809'984, 232448, 52428800, 798e12, 494.7e12, 66.9e12, 66.9e12,
     3.0e12, true},
    {"h200", "NVIDIA H200", 900, 132, 150'754'820'096, 232448, 62914560, 790e12, 494.7e12, 66.9e12, 66.9e12,
     4.3e12, true},
    {"b200", "NVIDIA B200", 1000, 148, 180'000'000'000, 232448, 132644864, 2250e12, 1125e12, 75e12, 37e12,
     7.7e12, false},
};

}  // namespace

const Gpu& find_gpu(std::string_view name) {
  const auto* const found = std::ranges::find(gpus, name, &Gpu::name);
  if (found != std::end(gpus)) return *found;
  std::vector<std::string_view> names;
  for (const Gpu& gpu : gpus) names.push_back(gpu.name);
  throw UserError(
      fmt::format("the backend 'cuda' has no description of a GPU '{}'; name one of those that it has: {}",
                  name, fmt::join(names, ", ")));
}

double operations_in_a_second(const Gpu& gpu, DType dtype, bool tf32) {
  if (size_of(dtype) == 2) return gpu.operations_in_16_bits;
  if (dtype == DType::float64) return gpu.operations_in_float64;
  return tf32 ? gpu.operations_in_tf32 : gpu.operations_in_float32;
}

std::string speeds_of(const Gpu& gpu) {
  return fmt::format("{:.0f} TFLOP/s in 16 bits and {:.1f} TB/s, {}", gpu.operations_in_16_bits / 1e12,
                     gpu.bytes_in_a_second / 1e12, gpu.measured ? "as measured" : "by its data sheet");
}

std::string json_of(const Gpu& gpu) {
  return fmt::format(
      R"({{"deviceName":"{}","deviceVer":{},"multiProcessorCount":{},"totalGlobalMem":{},)"
      R"("maxSharedMemoryPerBlockOptin":{},"l2CacheSize":{},"maxSharedMemoryPerBlock":49152,)"
      R"("reservedSharedMemoryPerBlock":1024,"regsPerBlock":65536,"maxRegistersPerSM":65536,"maxCtasPerSM":32,)"
      R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"maxGridSize":[2147483647,65535,65535],)"
      R"("maxBlockSize":[1024,1024,64],"warpSize":32,"smClockRateKHz":1980000,"memClockRateKHz":3201000,)"
      R"("driverVer":13000,"pciDeviceId":0,"cudaDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1}})",
      gpu.full_name, gpu.capability, gpu.processors, gpu.memory, gpu.shared_memory_of_block, gpu.cache);
}

}  // namespace plexaura::cuda::described
