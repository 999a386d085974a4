#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/params/placement.h"
#include "distributed/choices/cost_model.h"
#include "distributed/communicator/communicator.h"
#include "distributed/compression/compression.h"

namespace plexaura {

// The value of distributed.compression that stands for one of compression_names().
inline constexpr std::string_view automatic_compression = "auto";

// The same on all ranks.
struct CompressionChoice {
  std::string name = {};
  // Of all methods that can compress these gradients, in the order of compression_names(). Empty where all ranks are on
  // one host: the choice is `none`, and nothing was measured.
  std::vector<ExpectedSeconds> expected = {};
  double bytes_per_second = 0;  // that left a host in a sum
};

// Measures what an exchange of these gradients takes between these ranks, and what compressing them takes of their
// processors; then takes what cost_model.h says. `options`: ratio and rank count, the name does not. `placement`: of parameters of
// float32. `bucket_bytes`: least size of a bucket. `overlaps`: the exchange, with the backward pass. Takes about a second, over slow links two, and
// with many parameters the time of compressing them twice with each method; and memory for
// three times the gradients, which is free again behind it. Collective; the sums must be those of the algorithm `hierarchical`.
CompressionChoice choose_compression(const CompressionOptions& options, const Placement& placement,
                                     std::int64_t bucket_bytes, bool overlaps, Communicator& ranks);

}  // namespace plexaura
