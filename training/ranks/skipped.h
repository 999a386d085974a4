#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/exchange/collective.h"

namespace plexaura {

// The samples of all ranks that could not be read and were skipped (OnError::skip). A sample that several
// ranks skipped is counted once.
struct Skipped {
  std::int64_t count = 0;
  std::string first;  // error of the skipped sample with the lowest index
};

// Collective. `mine` has the index and the error of each sample that this rank has skipped.
Skipped gather_skipped(Collective& ranks, const std::map<std::int64_t, std::string>& mine,
                       std::string_view what);

}  // namespace plexaura
