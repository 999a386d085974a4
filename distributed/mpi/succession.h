#pragma once

#include <optional>
#include <string>

namespace plexaura {

// Where the network between hosts is cut, the ranks on each side hold those on the other for dead. The launcher decides
// who goes on: it keeps what ranks publish, and the first to ask it are the ones. Who does not reach it does not go on, so that no
// two sides train.
//
// `left`: a character for each rank at the start, '1' where it is among those that ask. One of these calls it, and MPI outlives
// ranks. Whether they go on; nothing where the launcher has not answered for so long, or keeps nothing.
std::optional<bool> ask_to_go_on(const std::string& left, double seconds);

// Whether all ranks of the job are on one host, where nothing parts them.
bool is_one_host();

}  // namespace plexaura
