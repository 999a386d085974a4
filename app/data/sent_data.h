#pragma once

#include "app/data/run_data.h"
#include "core/exchange/collective.h"

namespace plexaura {

// Whether rank 0 alone reads the data, and sends the others their samples.
bool sends_data(const std::string& strategy);

// What the other ranks have to know of the data that rank 0 has opened. On rank 0 `mine` itself; on the others, which
// bring nothing, datasets whose samples cannot be read there. Collective.
RunData share_data(Collective& ranks, RunData mine);

}  // namespace plexaura
