#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/exchange/collective.h"

namespace plexaura {

// Samples that could not be read and were skipped (OnError::skip), over all ranks; each is counted once.
struct Skipped {
  std::int64_t count = 0;
  std::string first;  // the error of the one with the lowest index
};

// Collective. `mine`: index and error of each sample that this rank has skipped.
Skipped gather_skipped(Collective& ranks, const std::map<std::int64_t, std::string>& mine,
                       std::string_view what);

}  // namespace plexaura
