#pragma once

#include <string>

#include "core/profile.h"
#include "distributed/communicator.h"

namespace plexaura {

// Writes the events of all ranks into one trace, on rank 0, which holds no more than its own and a piece of
// another's. All ranks together; however long it takes, nobody's deadline ends the run. UserError on all of
// them where the file cannot be written.
void write_profile(Communicator& ranks, const Profile& profile, const std::string& path);

}  // namespace plexaura
