#pragma once

#include <cstddef>
#include <map>

#include "core/base/export.h"
#include "core/compile/bind_kernels.h"
#include "core/params/placement.h"

namespace plexaura {

// Where every value of a lowered graph lies.
struct Assignment {
  std::map<Value, Place> places;
  std::vector<Place> workspaces;  // one per step
  std::size_t arena_bytes = 0;
  std::size_t arena_lower_bound = 0;
  std::size_t prologue_bytes = 0;
};

// Plans the arena: lifetimes from the order of the steps, work in place where a kernel allows it and the
// input dies there. Values with a home (leaves, targets) are given by `homes`. With `reuse` off every value
// keeps memory of its own for the whole program. `apart`: see plan_memory_apart().
PLEXAURA_API Assignment assign_memory(const Lowered& lowered, const std::map<Value, Place>& homes, bool reuse,
                                      std::size_t apart = 0);

}  // namespace plexaura
