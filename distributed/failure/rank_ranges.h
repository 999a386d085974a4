#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura {

// Formats ranks, given in rising order, as texts of at most `most_bytes` bytes: "3-9 12". Returns several
// texts if the ranks do not fit into one. Returns none if there are no ranks. 24 bytes are enough for any
// range.
std::vector<std::string> rank_ranges(const std::vector<int>& ranks, std::size_t most_bytes);
// Returns the ranks in a text of rank_ranges(). Stops at the first word that is no range.
std::vector<int> read_rank_ranges(std::string_view text);

}  // namespace plexaura
