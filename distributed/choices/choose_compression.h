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

// The value of distributed.compression that lets measurements choose one of compression_names().
inline constexpr std::string_view automatic_compression = "auto";

// The chosen method of compression. It is the same on all ranks.
struct CompressionChoice {
  std::string name = {};
  // Estimates of all methods that can compress these gradients, in the order of compression_names(). Empty if all ranks
  // are on one host, or if there are no gradients: then the choice is `none`, and nothing was measured.
  std::vector<ExpectedSeconds> expected = {};
  double bytes_per_second = 0;  // bytes per second that left a host in a sum
};

// Chooses `none` if all ranks are on one host, or without gradients. Otherwise measures how long an exchange of these
// gradients takes, and how long the processors take to compress them; then chooses by the estimates of cost_model.h.
// `options` defines ratio and rank; its name is ignored. The parameters must be float32. `bucket_bytes` is the
// least size of a bucket. `overlaps` is true if the exchange overlaps with the backward pass. The call takes about a
// second, and two over slow links; with many parameters also the time to compress them twice by each method. It needs
// memory for three times the gradients, and frees it before it returns. The sums must be those of the algorithm
// `hierarchical`. Collective.
CompressionChoice choose_compression(const CompressionOptions& options, const Placement& placement,
                                     std::int64_t bucket_bytes, bool overlaps, Communicator& ranks);

}  // namespace plexaura
