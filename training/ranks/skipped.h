#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/exchange/collective.h"

namespace plexaura {

// Samples that could not be read and were passed over (OnError::skip), over all ranks, each once.
struct Skipped {
  std::int64_t count = 0;
  std::string first;  // the error of the one with the lowest index
};

// From what each rank has met: the index of a sample and its error. All ranks call together.
Skipped gather_skipped(Collective& ranks, const std::map<std::int64_t, std::string>& mine,
                       std::string_view what);

}  // namespace plexaura
