#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/export.h"

namespace plexaura {

// Every value in an arena, a feed slot or the constants starts at a multiple of this many bytes: the size of
// a cache line, and the alignment of Memory::address.
inline constexpr std::size_t granule = 64;

constexpr std::size_t whole_granules(std::size_t bytes) { return (bytes + granule - 1) / granule * granule; }

// The memory of one value, which is in use from instruction `first` to instruction `last`, both included.
struct Lifetime {
  std::size_t bytes;
  std::size_t first;
  std::size_t last;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // in bytes, one for each lifetime; multiples of `granule`
  std::size_t peak = 0;              // bytes of the whole arena
  std::size_t lower_bound = 0;       // the largest sum of bytes in use at one instruction
};

// Assigns each lifetime an offset in one arena, so that memory in use at the same time does not overlap.
// Equal input gives an equal plan. Tries several greedy orders (by size, by size x duration, by duration, by
// time) and returns the plan with the smallest peak. For more than 8,192 lifetimes it tries only the order by
// time, whose cost is nearly linear.
PLEXAURA_API MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

// Plans memory as plan_memory() does, but keeps the memory of a value occupied for up to `instructions` more instructions
// after its last use. So these instructions can run at the same time as the one with the last use. Does this only if the
// arena grows by at most a hundredth; otherwise returns the plan of plan_memory().
PLEXAURA_API MemoryPlan plan_memory_apart(std::span<const Lifetime> lifetimes, std::size_t instructions);

}  // namespace plexaura
