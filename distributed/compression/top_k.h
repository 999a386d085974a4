#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "distributed/communicator/communicator.h"
#include "distributed/compression/compression.h"

namespace plexaura {

// `top-k`: of each bucket only the elements of largest magnitude cross, each as its place and its value. All ranks get
// those of all ranks, and add them one rank after the other, in the order of ranks.
class TopK final : public Compression {
 public:
  // `ratio`: the share of a bucket's elements that cross from each rank, above 0 and at most 1; one at least.
  TopK(Communicator& ranks, double ratio) : ranks_(ranks), ratio_(ratio) {}

  // Throws UserError for a bucket of more elements than places can be told apart.
  void begin(const Placement& placement, std::span<const Bucket> buckets) override;
  void exchange(std::size_t bucket, std::span<float> owed, std::span<float> sums,
                std::string_view what) override;
  std::vector<Crossing> crossings(std::size_t bucket, std::int64_t elements, int ranks) const override;

 private:
  // An element as it crosses.
  struct Element {
    std::uint32_t place;
    float value;
  };

  std::size_t count_of(std::size_t elements) const;
  void take_largest(std::span<float> owed, std::span<Element> chosen);

  Communicator& ranks_;
  double ratio_;
  std::vector<std::uint32_t> magnitudes_;  // scratch
  std::vector<Element> crossing_;          // of all ranks; each has as many
};

}  // namespace plexaura
