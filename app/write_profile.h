#pragma once

#include <string>

#include "core/base/profile.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// Collective. Shifts the times of this rank's profile to the clock of rank 0, which ranks read by messages.
// The error is at most half the time of the fastest pair of question and answer.
void align_clocks(Communicator& ranks, Profile& profile);

// Collective. Writes the events of all ranks to one trace, on rank 0. Rank 0 keeps in memory only its own events, and a
// piece of the events of another rank. Ranks wait for each other up to ten minutes, even if the deadline between ranks is
// shorter. Throws UserError on all ranks if the file cannot be written.
void write_profile(Communicator& ranks, const Profile& profile, const std::string& path);

}  // namespace plexaura
