#include "core/vm/workspace.h"

namespace plexaura {

Workspace::Workspace(Backend& backend, std::size_t bytes)
    : memory_(backend.allocate(bytes, MemoryUse::device)) {}

}  // namespace plexaura
