#pragma once

#include <optional>
#include <span>

#include "core/compile/compile.h"

namespace plexaura::testing {

// Returns the smallest arena that a program with these outputs can have, which an error of compile() names; nothing if the
// program needs no arena.
inline std::optional<std::size_t> least_arena(const Graph& graph, std::span<const ProgramOutput> outputs,
                                              Backend& backend) {
  try {
    compile(graph, outputs, backend, {.memory_limit = 1});
  } catch (const MemoryLimitError& error) {
    return error.least_bytes();
  }
  return std::nullopt;
}

}  // namespace plexaura::testing
