#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/dtype.h"

// The order in which sums over ranks are added. Besides this code, only the tree of tree_sum.h knows it.
//
// The summands are *shards*. Each rank of a communicator contributes one, numbered as the ranks are; if there
// are more shards than ranks, it contributes the sum of one block of them (see below). The sum of the shards
// [first, last) is the sum of [first, middle) plus the sum of [middle, last), where `middle` - `first` is the
// largest power of two below the number of shards: ((0 + 1) + (2 + 3)) + 4 for five of them. The ranges that
// arise in this way are called blocks. Each element is added independently, so its bits do not depend on how
// elements are cut into calls, parts or messages. They do not depend on the hosts of the ranks either: ranks
// that can access each other's memory first add only blocks that consist of their shards alone.
namespace plexaura {

// The shards from `first` up to, but without, `last`.
struct ShardRange {
  int first = 0;
  int last = 1;

  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

// Returns the blocks that `ranks` ranks contribute to the sum of `shards` shards, in ascending order. The
// largest block is divided until there are enough. There must be at least as many shards as ranks.
std::vector<ShardRange> divide_shards(int shards, int ranks);

// Returns the number of the shard before which the sum of at least two shards is split.
int middle_of(ShardRange shards);

// Returns the fewest blocks of the sum of `count` shards that contain exactly `shards`. Both are in ascending
// order.
std::vector<ShardRange> blocks_among(std::span<const int> shards, int count);

// The sum of one block of shards, or a single shard.
struct Summand {
  ShardRange shards;
  const std::byte* data = nullptr;
};

// Adds `count` elements of all summands in the order that the comment at the beginning of this file defines, and writes
// the sums to each array in `to`. These may be arrays of summands. The summands must be in ascending order and form one
// block. Each cache line is read and written once.
void add_in_order(DType dtype, std::span<const Summand> summands, std::int64_t count,
                  std::span<std::byte* const> to);

// Returns summands in which array i is shard i.
std::vector<Summand> as_shards(std::span<std::byte* const> arrays);

}  // namespace plexaura
