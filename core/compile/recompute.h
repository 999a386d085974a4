#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "core/base/export.h"
#include "core/compile/assign_memory.h"
#include "core/compile/bind_kernels.h"

namespace plexaura {

// A program that computes some values twice, and its memory.
struct Recomputed {
  Lowered lowered;
  Assignment assignment;
};

// Returns the program with fewer values in memory between the forward and the backward pass: the backward pass
// computes them again, by the same kernels with the same layouts, so that all results have the same bits. The
// first runs keep their order. Chooses the values so that the arena has at most `limit` bytes and the second
// runs take as few seconds as possible by the estimates of the backend: first the values that are left after
// cutting the forward pass into segments (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016),
// and then keeps values again, the most expensive ones for each byte first, while the arena fits. `assign`
// plans the memory of a program with these homes. `unlimited` is the arena of the program as it is, in bytes.
// Throws MemoryLimitError with the smallest arena that was found if no choice fits. The number of choices that
// are compared falls with the length of the program, so that the time is limited.
Recomputed recompute(const Lowered& lowered, const std::map<Value, Place>& homes,
                     const std::function<Assignment(const Lowered&)>& assign, std::size_t unlimited,
                     std::size_t limit);

}  // namespace plexaura
