#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "distributed/communicator/communicator.h"
#include "distributed/compression/compression.h"
#include "distributed/sums/sum_order.h"

namespace plexaura {

// `fp16` and `bf16`: each element is transmitted in 16 bits. The elements are cut into one part for each
// rank. A rank rounds what it owes, and sends each part to the rank that the part belongs to. That rank adds
// the part in float32, in the order of sum_order.h, rounds the sums, and sends them to all ranks. So each
// element is rounded twice, whatever the number of ranks. Rounding errors are owed: the rank that sends a
// contribution owes the error of the contribution, and the rank that adds a sum owes the error of the sum.
//
// Each part is preceded by a power of two that scales it, so that its largest element is below 2^15 and no number
// overflows. A part with elements that are not finite is not scaled; these elements stay infinite or NaN.
template <class Half>
class HalfPrecision final : public Compression {
 public:
  explicit HalfPrecision(Communicator& ranks) : ranks_(ranks) {}

  void exchange(std::size_t bucket, std::span<float> owed, std::span<float> sums,
                std::string_view what) override;
  std::vector<Crossing> crossings(std::size_t bucket, std::int64_t elements, int ranks) const override;

 private:
  // Returns the slice of an array that belongs to a rank.
  std::span<float> part(std::span<float> values, int rank) const;
  std::span<std::byte> block(std::vector<std::byte>& blocks, int rank) const;
  void add_up(std::span<float> sums);

  Communicator& ranks_;
  // Sizes and buffers of the call under way. A block is a part in encoded form.
  std::size_t part_length_ = 0;
  std::size_t block_bytes_ = 0;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
  std::vector<float> decoded_;  // this rank's part, as received from each rank and decoded
  std::vector<Summand> summands_;
};

}  // namespace plexaura
