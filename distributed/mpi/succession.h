#pragma once

#include <optional>
#include <string>

namespace plexaura {

// If the network between hosts is cut, the ranks on each side consider the other side dead. The launcher
// decides which side continues: it stores texts that ranks publish, and the first side that asks may
// continue. Ranks that cannot reach the launcher do not continue. So two sides never train at the same time.
//
// Called by one of the ranks that are left, if MPI outlives ranks. `left` has a character for each rank at
// the start: '1' if the rank is left. Returns true if these ranks may continue. Returns nothing if the
// launcher has not answered within `seconds`, or cannot store texts of this length.
std::optional<bool> ask_to_continue(const std::string& left, double seconds);

// True if all ranks of the job are on one host, where no network can be cut.
bool is_one_host();

}  // namespace plexaura
