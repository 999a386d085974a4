#include "distributed/sums/sum_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "distributed/node/reduce.h"

namespace plexaura {
namespace {

constexpr std::size_t tile_bytes = 8192;  // with two summands of this size, it fits in the first-level cache

struct alignas(64) Tile : std::array<std::byte, tile_bytes> {};

// A range of elements: `count` elements that begin at byte `begin` of each summand.
struct Stretch {
  DType dtype;
  std::size_t begin;
  std::int64_t count;
};

void add_stretch(const Stretch& at, std::span<const Summand> summands, std::byte* sum) {
  const std::byte* const first = summands.front().data + at.begin;
  if (summands.size() == 1) {
    std::memcpy(sum, first, bytes_of(at.dtype, at.count));
    return;
  }
  const int middle = middle_of({summands.front().shards.first, summands.back().shards.last});
  const auto right =
      std::ranges::find_if(summands, [&](const Summand& s) { return s.shards.first >= middle; });
  const std::span<const Summand> lower(summands.begin(), right);
  const std::span<const Summand> upper(right, summands.end());
  if (lower.size() == 1 && upper.size() == 1) {
    add(at.dtype, first, upper.front().data + at.begin, sum, at.count);
    return;
  }
  add_stretch(at, lower, sum);
  if (upper.size() == 1) return add(at.dtype, sum, upper.front().data + at.begin, at.count);
  Tile other;
  add_stretch(at, upper, other.data());
  add(at.dtype, sum, other.data(), at.count);
}

void find_blocks(std::span<const int> shards, ShardRange range, std::vector<ShardRange>& found) {
  const auto first = std::ranges::lower_bound(shards, range.first);
  const auto last = std::ranges::lower_bound(shards, range.last);
  if (first == last) return;
  if (last - first == range.last - range.first) {
    found.push_back(range);
    return;
  }
  const int middle = middle_of(range);
  find_blocks(shards, {range.first, middle}, found);
  find_blocks(shards, {middle, range.last}, found);
}

}  // namespace

int middle_of(ShardRange shards) {
  const auto count = static_cast<unsigned>(shards.last - shards.first);
  return shards.first + static_cast<int>(std::bit_ceil(count) / 2);
}

std::vector<ShardRange> divide_shards(int shards, int ranks) {
  std::vector<ShardRange> blocks{{0, shards}};
  while (static_cast<int>(blocks.size()) < ranks) {
    const auto largest =
        std::ranges::max_element(blocks, {}, [](ShardRange block) { return block.last - block.first; });
    const int middle = middle_of(*largest);
    const ShardRange upper{middle, std::exchange(largest->last, middle)};
    blocks.insert(largest + 1, upper);
  }
  return blocks;
}

std::vector<ShardRange> blocks_among(std::span<const int> shards, int count) {
  std::vector<ShardRange> found;
  find_blocks(shards, {0, count}, found);
  return found;
}

void add_in_order(DType dtype, std::span<const Summand> summands, std::int64_t count,
                  std::span<std::byte* const> to) {
  Tile tile;
  const auto most = static_cast<std::int64_t>(tile_bytes / size_of(dtype));
  for (std::int64_t first = 0; first < count; first += most) {
    const Stretch at{dtype, bytes_of(dtype, first), std::min(most, count - first)};
    add_stretch(at, summands, tile.data());
    for (std::byte* const array : to) std::memcpy(array + at.begin, tile.data(), bytes_of(dtype, at.count));
  }
}

std::vector<Summand> as_shards(std::span<std::byte* const> arrays) {
  std::vector<Summand> summands;
  for (std::byte* const array : arrays) {
    const int shard = static_cast<int>(summands.size());
    summands.push_back({{shard, shard + 1}, array});
  }
  return summands;
}

}  // namespace plexaura
