#pragma once

#include "app/data/run_data.h"
#include "core/exchange/collective.h"

namespace plexaura {

// True if only rank 0 reads the data, and sends the other ranks their samples.
bool sends_data(const std::string& strategy);

// Collective. Returns `mine` on rank 0. On other ranks, whose `mine` is ignored, returns a description of
// rank 0's data, with datasets whose samples cannot be read there.
RunData share_data(Collective& ranks, RunData mine);

}  // namespace plexaura
