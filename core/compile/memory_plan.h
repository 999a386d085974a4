#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/export.h"

namespace plexaura {

// What lies in an arena, a feed or among the constants begins at a multiple of this many bytes: a cache line,
// and what Memory::address promises.
inline constexpr std::size_t granule = 64;

constexpr std::size_t whole_granules(std::size_t bytes) { return (bytes + granule - 1) / granule * granule; }

// A piece of memory that is needed from instruction `first` to instruction `last`, both included.
struct Lifetime {
  std::size_t bytes;
  std::size_t first;
  std::size_t last;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // one per lifetime, whole granules
  std::size_t peak = 0;              // bytes of the whole arena
  std::size_t lower_bound = 0;       // the largest sum of what is alive at one instruction
};

// Gives each lifetime an offset in one arena so that pieces alive at the same time do not overlap. A pure
// function: equal input, equal plan. Tries a few greedy orders (by size, by size x duration, by duration, by time)
// and takes the least peak; of more than 8,192 pieces only the order by time, whose cost is all but linear.
PLEXAURA_API MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

// The same, but where it costs little memory, a hundredth at most, nothing takes the place of a piece for `instructions` behind its
// last one: so these need not wait for that one.
PLEXAURA_API MemoryPlan plan_memory_apart(std::span<const Lifetime> lifetimes, std::size_t instructions);

}  // namespace plexaura
