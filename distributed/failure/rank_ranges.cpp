#include "distributed/failure/rank_ranges.h"

#include <fmt/format.h>
#include <sstream>

namespace plexaura {

std::vector<std::string> rank_ranges(const std::vector<int>& ranks, std::size_t most_bytes) {
  std::vector<std::string> texts;
  for (std::size_t first = 0, next = 0; first < ranks.size(); first = next) {
    for (next = first + 1; next < ranks.size() && ranks[next] == ranks[next - 1] + 1;) ++next;
    const std::string range = next - first == 1 ? fmt::format("{}", ranks[first])
                                                : fmt::format("{}-{}", ranks[first], ranks[next - 1]);
    if (texts.empty() || texts.back().size() + 1 + range.size() > most_bytes)
      texts.push_back(range);
    else
      texts.back() += " " + range;
  }
  return texts;
}

std::vector<int> read_rank_ranges(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::vector<int> ranks;
  for (int first = 0; words >> first;) {
    int last = first;
    if (words.peek() == '-' && !(words.ignore() >> last)) break;
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace plexaura
