#pragma once

#include <string>

#include "core/base/profile.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// From now on this rank's profile tells the times of rank 0's, whose clock is asked in messages: off by half the time of the
// fastest question and answer at most. All ranks together.
void align_clocks(Communicator& ranks, Profile& profile);

// Writes the events of all ranks into one trace, on rank 0, which holds no more than its own and a piece of
// another's. All ranks together; however long it takes, nobody's deadline ends the run. UserError on all of
// them where the file cannot be written.
void write_profile(Communicator& ranks, const Profile& profile, const std::string& path);

}  // namespace plexaura
