#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura {

// Ranks, in rising order, as texts of at most so many bytes: "3-9 12". More than one text where one cannot hold all of them; none
// where there are no ranks. A text of at least 24 bytes holds any range.
std::vector<std::string> rank_ranges(const std::vector<int>& ranks, std::size_t most_bytes);
// The ranks of such a text; what follows something else is not read.
std::vector<int> read_rank_ranges(std::string_view text);

}  // namespace plexaura
