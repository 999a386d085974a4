#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/dtype.h"

// The order in which sums over ranks are added. Nothing else in the project knows it.
//
// What is added are *shards*: each rank of a communicator brings one, numbered as the ranks are, or the sum of one
// block of them (see below) where there are more shards than ranks. The sum of the
// shards [first, last) is the sum of [first, middle) plus the sum of [middle, last), where `middle` lies as far behind
// `first` as the largest power of two below the number of shards: ((0 + 1) + (2 + 3)) + 4 for five of them. The
// ranges that arise so are called blocks. Each element is added alone, so its bits do not depend on how elements
// are cut into calls, parts or messages. They do not depend on where ranks run either: ranks that see each other's
// memory add only those blocks first that are theirs alone.
namespace plexaura {

// The shards [first, last).
struct ShardRange {
  int first = 0;
  int last = 1;

  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

// The blocks of the sum of `shards` that so many ranks bring, ascending: one of them is divided until there are enough,
// the largest first. At most as many ranks as shards.
std::vector<ShardRange> divide_shards(int shards, int ranks);

// Where the sum of at least two shards is split.
int middle_of(ShardRange shards);

// The fewest blocks of the sum of `count` shards that hold exactly these; ascending, as the shards must be.
std::vector<ShardRange> blocks_among(std::span<const int> shards, int count);

// The sum of one block of shards, or a single shard.
struct Summand {
  ShardRange shards;
  const std::byte* data = nullptr;
};

// Adds `count` elements of all summands in the order above, and writes the sums to each of `to`, which may be the
// summands themselves. The summands ascend and are together one block. Each cache line is read and written once.
void add_in_order(DType dtype, std::span<const Summand> summands, std::int64_t count,
                  std::span<std::byte* const> to);

// Summand i is shard i.
std::vector<Summand> as_shards(std::span<std::byte* const> arrays);

}  // namespace plexaura
