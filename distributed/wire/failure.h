#pragma once

#include <string>
#include <vector>

namespace plexaura {

// Returns "rank 3", "ranks 1 and 3", or "ranks 0, 1 and 3".
std::string list_ranks(const std::vector<int>& ranks);

}  // namespace plexaura
