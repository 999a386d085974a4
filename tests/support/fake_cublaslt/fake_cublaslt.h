#pragma once

#include <cstdint>
#include <cublasLt.h>

// cuBLASLt's functions without a GPU, after the library's manual: a product of matrices that stand column by column, on
// the host, when it is called. Of float32 and float64.

namespace plexaura::testing::fake_cublaslt {

// What the library was last told.
struct Told {
  cublasComputeType_t computed_in;
  cudaDataType type_of_factors;
  std::uint64_t most_workspace;
  std::uint32_t reduction_schemes;
  std::uint32_t least_alignment;     // of all operands
  std::uintptr_t alignment_of_bias;  // 0: none
  void* stream;
  std::size_t workspace;
};
const Told& told();

// Whether the library names its second algorithm first.
extern bool is_reordered;

constexpr std::uint64_t refused_extent = 77;  // a result with so many columns is not supported
constexpr std::size_t workspace = 4096;       // of the first algorithm; the second one needs none

}  // namespace plexaura::testing::fake_cublaslt
