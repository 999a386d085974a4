#pragma once

#include <string>

#include "core/device/backend.h"

namespace plexaura {

// What a candidate computes, without its implementation: ops with their options, how the region is wired,
// types, layouts, what is wanted. Places in the graph do not count, so that the sixteen equal
// blocks of a net have the same text. Large options are shortened.
PLEXAURA_API std::string text_of(const RegionQuery& query, const Candidate& candidate);

}  // namespace plexaura
