#include "distributed/compression/half_precision.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/tensor/dtype.h"

namespace plexaura {
namespace {

constexpr std::size_t block_alignment = 64;  // alignment of the parts of all_gather()
constexpr std::size_t header_bytes = sizeof(std::int32_t);
constexpr std::uint32_t infinite = 0x7f800000U;

// Returns the exponent of the power of two by which the values are multiplied; 0 if not all of them are
// finite, or if all are 0.
std::int32_t scale_for(std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & ~0x80000000U);
  if (largest == 0 || largest >= infinite) return 0;
  int exponent = 0;
  std::frexp(std::bit_cast<float>(largest), &exponent);
  // Limits the exponent, so that both this power and its inverse are normal numbers.
  return std::min(15 - exponent, 126);
}

// part_length_of() returns the number of elements of each rank's part. block_bytes_of() returns the number of
// bytes of an encoded part.
std::size_t part_length_of(std::size_t elements, std::size_t ranks) { return (elements + ranks - 1) / ranks; }

template <class Half>
std::size_t block_bytes_of(std::size_t part_length) {
  const std::size_t bytes = header_bytes + part_length * sizeof(Half);
  return (bytes + block_alignment - 1) / block_alignment * block_alignment;
}

// Writes the rounded values to the block, and replaces each value by its rounding error.
template <class Half>
void encode(std::span<float> values, std::span<std::byte> block) {
  const std::int32_t scale = scale_for(values);
  const float up = std::ldexp(1.0F, scale);
  const float down = std::ldexp(1.0F, -scale);
  std::memcpy(block.data(), &scale, header_bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Half half(values[i] * up);
    std::memcpy(block.data() + header_bytes + i * sizeof half, &half, sizeof half);
    values[i] -= static_cast<float>(half) * down;
  }
}

template <class Half>
void decode(std::span<const std::byte> block, std::span<float> values) {
  std::int32_t scale = 0;
  std::memcpy(&scale, block.data(), header_bytes);
  const float down = std::ldexp(1.0F, -scale);
  for (std::size_t i = 0; i < values.size(); ++i) {
    Half half;
    std::memcpy(&half, block.data() + header_bytes + i * sizeof half, sizeof half);
    values[i] = static_cast<float>(half) * down;
  }
}

}  // namespace

template <class Half>
void HalfPrecision<Half>::exchange(std::size_t, std::span<float> owed, std::span<float> sums,
                                   std::string_view what) {
  const auto ranks = static_cast<std::size_t>(ranks_.size());
  part_length_ = part_length_of(owed.size(), ranks);
  block_bytes_ = block_bytes_of<Half>(part_length_);
  sent_.resize(ranks * block_bytes_);
  received_.resize(sent_.size());
  for (int rank = 0; rank < ranks_.size(); ++rank) encode<Half>(part(owed, rank), block(sent_, rank));
  ranks_.all_to_all(sent_, received_, what);
  const std::span<float> mine = part(sums, ranks_.rank());
  add_up(mine);
  encode<Half>(mine, block(sent_, ranks_.rank()));
  const std::span<float> owed_here = part(owed, ranks_.rank());
  for (std::size_t i = 0; i < mine.size(); ++i) owed_here[i] += mine[i];
  ranks_.all_gather(DType::uint8, sent_.data(), static_cast<std::int64_t>(sent_.size()), what);
  for (int rank = 0; rank < ranks_.size(); ++rank) decode<Half>(block(sent_, rank), part(sums, rank));
}

// Returns the calls of an exchange. The first one sends the contributions, and the second one the sums.
template <class Half>
std::vector<Crossing> HalfPrecision<Half>::crossings(std::size_t, std::int64_t elements, int ranks) const {
  const std::size_t length =
      part_length_of(static_cast<std::size_t>(elements), static_cast<std::size_t>(ranks));
  return {2, {Crossing::Call::blocks, static_cast<std::int64_t>(block_bytes_of<Half>(length))}};
}

template <class Half>
std::span<float> HalfPrecision<Half>::part(std::span<float> values, int rank) const {
  const std::size_t first = std::min(static_cast<std::size_t>(rank) * part_length_, values.size());
  return values.subspan(first, std::min(part_length_, values.size() - first));
}

template <class Half>
std::span<std::byte> HalfPrecision<Half>::block(std::vector<std::byte>& blocks, int rank) const {
  return std::span(blocks).subspan(static_cast<std::size_t>(rank) * block_bytes_, block_bytes_);
}

template <class Half>
void HalfPrecision<Half>::add_up(std::span<float> sums) {
  decoded_.resize(static_cast<std::size_t>(ranks_.size()) * sums.size());
  summands_.clear();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const auto values =
        std::span(decoded_).subspan(static_cast<std::size_t>(rank) * sums.size(), sums.size());
    decode<Half>(block(received_, rank), values);
    summands_.push_back({{rank, rank + 1}, std::as_bytes(values).data()});
  }
  std::byte* const to = std::as_writable_bytes(sums).data();
  add_in_order(DType::float32, summands_, static_cast<std::int64_t>(sums.size()), std::span(&to, 1));
}

template class HalfPrecision<float16>;
template class HalfPrecision<bfloat16>;

}  // namespace plexaura
