#pragma once

#include <cstddef>
#include <map>

#include "core/base/export.h"
#include "core/compile/bind_kernels.h"
#include "core/params/placement.h"

namespace plexaura {

// The address of every value of a lowered graph.
struct Assignment {
  std::map<Value, Place> places;
  std::vector<Place> workspaces;  // workspaces of the kernels, one for each step
  std::size_t arena_bytes = 0;
  std::size_t arena_lower_bound = 0;
  std::size_t prologue_bytes = 0;
};

// Plans the arena. The order of the steps gives the lifetimes of values. An output takes the memory of an
// input if the kernel allows it and no later step reads the input. `homes` gives the addresses of values that
// live outside the arena: leaves and targets. If `reuse` is false, every value keeps its memory to the end
// of the program. `apart` is the argument `instructions` of plan_memory_apart().
PLEXAURA_API Assignment assign_memory(const Lowered& lowered, const std::map<Value, Place>& homes, bool reuse,
                                      std::size_t apart = 0);

}  // namespace plexaura
