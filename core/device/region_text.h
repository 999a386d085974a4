#pragma once

#include <string>

#include "core/device/backend.h"

namespace plexaura {

// Returns a text of a candidate's computation, without its implementation: ops with their options, the
// connections between them, types, layouts, and which outputs are wanted. It does not depend on node numbers,
// so that equal blocks of a net have the same text. A larger tensor appears as its type, and a graph as its hash.
PLEXAURA_API std::string text_of(const RegionQuery& query, const Candidate& candidate);

}  // namespace plexaura
