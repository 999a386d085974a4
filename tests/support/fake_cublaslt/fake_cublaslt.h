#pragma once

#include <cstdint>
#include <cublasLt.h>

// cuBLASLt's functions without a GPU, written after the library's manual. A call computes a product of
// column-major matrices on the host, in float32 or float64.

namespace plexaura::testing::fake_cublaslt {

// The arguments of the last call.
struct Recorded {
  cublasComputeType_t computed_in;
  cudaDataType type_of_factors;
  std::uint64_t most_workspace;
  std::uint32_t reduction_schemes;
  std::uint32_t least_alignment;     // of all operands
  std::uintptr_t alignment_of_bias;  // 0: no bias
  void* stream;
  std::size_t workspace;
};
const Recorded& recorded();

// If true, the library returns its second algorithm first.
extern bool is_reordered;

constexpr std::uint64_t refused_extent = 77;  // products with this number of columns are not supported
constexpr std::size_t workspace = 4096;       // of the first algorithm; the second one needs none

}  // namespace plexaura::testing::fake_cublaslt
