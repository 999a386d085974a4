#include "core/vm/workspace.h"

#include <algorithm>

namespace plexaura {

Workspace::Workspace(Backend& backend, std::size_t bytes)
    : memory_(backend.allocate(std::max<std::size_t>(bytes, 64), MemoryUse::device)) {}

}  // namespace plexaura
