#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "distributed/communicator/communicator.h"
#include "distributed/compression/compression.h"

namespace plexaura {

// `top-k`: only the elements of largest magnitude in each bucket are transmitted, each as its index and its
// value. All ranks get the elements of all ranks, and add them in the order of ranks.
class TopK final : public Compression {
 public:
  // `ratio` is the share of a bucket's elements that each rank transmits, above 0 and at most 1. At least one
  // element is transmitted.
  TopK(Communicator& ranks, double ratio) : ranks_(ranks), ratio_(ratio) {}

  // Throws UserError for a bucket with more elements than a 32-bit index can number.
  void begin(const Placement& placement, std::span<const Bucket> buckets) override;
  void exchange(std::size_t bucket, std::span<float> owed, std::span<float> sums,
                std::string_view what) override;
  std::vector<Crossing> crossings(std::size_t bucket, std::int64_t elements, int ranks) const override;

 private:
  // An element in the form in which it is transmitted.
  struct Element {
    std::uint32_t place;
    float value;
  };

  std::size_t count_of(std::size_t elements) const;
  void take_largest(std::span<float> owed, std::span<Element> chosen);

  Communicator& ranks_;
  double ratio_;
  std::vector<std::uint32_t> magnitudes_;  // buffer of magnitudes, for choosing the largest
  std::vector<Element> crossing_;          // elements of all ranks, with the same number from each
};

}  // namespace plexaura
