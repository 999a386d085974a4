#include "distributed/compression/top_k.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <functional>

#include "core/base/error.h"

namespace plexaura {
namespace {

constexpr std::size_t block_bytes = 64;  // all_gather() cuts arrays at multiples of this

std::size_t whole_blocks(std::size_t bytes) { return (bytes + block_bytes - 1) / block_bytes * block_bytes; }

// Returns a number whose order is that of the magnitudes of floats, with NaN above all others.
std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU; }

}  // namespace

void TopK::begin(const Placement&, std::span<const Bucket> buckets) {
  constexpr std::int64_t most = std::int64_t{1} << 32;
  for (const Bucket& bucket : buckets)
    if (bucket.count > most)
      throw UserError(
          fmt::format("the compression top-k takes buckets of at most {} elements, and one has {}: make "
                      "distributed.bucket_bytes smaller",
                      most, bucket.count));
}

void TopK::exchange(std::size_t, std::span<float> owed, std::span<float> sums, std::string_view what) {
  const std::size_t count = count_of(owed.size());
  // The number of elements of each rank, with padding.
  const std::size_t room = whole_blocks(count * sizeof(Element)) / sizeof(Element);
  crossing_.resize(room * static_cast<std::size_t>(ranks_.size()));
  take_largest(owed, std::span(crossing_).subspan(room * static_cast<std::size_t>(ranks_.rank()), count));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(crossing_));
  ranks_.all_gather(DType::uint8, bytes.data(), static_cast<std::int64_t>(bytes.size()), what);
  std::ranges::fill(sums, 0.0F);
  for (std::size_t first = 0; first < crossing_.size(); first += room)
    for (const Element& element : std::span(crossing_).subspan(first, count))
      sums[element.place] += element.value;
}

std::size_t TopK::count_of(std::size_t elements) const {
  const auto share = static_cast<std::size_t>(std::ceil(ratio_ * static_cast<double>(elements)));
  return std::min(std::max<std::size_t>(share, 1), elements);
}

std::vector<Crossing> TopK::crossings(std::size_t, std::int64_t elements, int) const {
  const std::size_t bytes = whole_blocks(count_of(static_cast<std::size_t>(elements)) * sizeof(Element));
  return {{Crossing::Call::blocks, static_cast<std::int64_t>(bytes)}};
}

// Moves the largest elements to `chosen`. If several elements have the same magnitude, the first ones are
// taken.
void TopK::take_largest(std::span<float> owed, std::span<Element> chosen) {
  magnitudes_.resize(owed.size());
  std::ranges::transform(owed, magnitudes_.begin(), magnitude);
  const auto last = magnitudes_.begin() + static_cast<std::ptrdiff_t>(chosen.size()) - 1;
  std::ranges::nth_element(magnitudes_, last, std::ranges::greater{});
  const std::uint32_t least = *last;
  const auto above = static_cast<std::size_t>(
      std::count_if(magnitudes_.begin(), last, [&](std::uint32_t each) { return each > least; }));
  std::size_t equal = chosen.size() - above;  // elements with magnitude `least` that are still to be taken
  std::size_t next = 0;
  for (std::size_t i = 0; i < owed.size() && next < chosen.size(); ++i) {
    const std::uint32_t own = magnitude(owed[i]);
    if (own < least || (own == least && equal == 0)) continue;
    if (own == least) --equal;
    chosen[next++] = {static_cast<std::uint32_t>(i), owed[i]};
    owed[i] = 0;
  }
}

}  // namespace plexaura
