#include "core/vm/workspace.h"

namespace plexaura {

Workspace::Workspace(Backend& backend, std::size_t bytes, std::size_t feed_bytes)
    : memory_(backend.allocate(bytes, MemoryUse::device)), feeds_(backend, feed_bytes) {}

}  // namespace plexaura
