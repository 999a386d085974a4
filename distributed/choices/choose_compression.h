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
  // The estimates of all methods that can compress these gradients, in the order of compression_names(). Empty if all ranks are on
  // one host: then the choice is `none`, and nothing was measured.
  std::vector<ExpectedSeconds> expected = {};
  double bytes_per_second = 0;  // that left a host in a sum
};

// Measures how long an exchange of these gradients takes between these ranks, and how long their processors take to compress them;
// then chooses by the estimates of cost_model.h. `options`: gives ratio and rank; its name is ignored. `placement`: of float32
// parameters. `bucket_bytes`: least size of a bucket. `overlaps`: the exchange overlaps with the backward pass. It takes about a second,
// two over slow links, and with many parameters the time to compress them twice by each method. It needs memory for three
// times the gradients and frees it at its end. The sums must be those of the algorithm `hierarchical`. Collective.
CompressionChoice choose_compression(const CompressionOptions& options, const Placement& placement,
                                     std::int64_t bucket_bytes, bool overlaps, Communicator& ranks);

}  // namespace plexaura
