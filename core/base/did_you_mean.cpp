#include "core/base/did_you_mean.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>
#include <vector>

namespace plexaura {

namespace {

// Returns the optimal string alignment distance. It is computed by rows of a table, in which row i has the
// distances of a's first i letters to all beginnings of b.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above.back();
}

bool is_same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](unsigned char letter) { return std::tolower(letter); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> known) {
  const auto same = std::ranges::find_if(
      known, [&](const std::string& candidate) { return is_same_but_for_case(name, candidate); });
  if (same != known.end()) return *same;
  std::string best;
  std::size_t fewest = 0;
  for (const std::string& candidate : known) {
    // If the lengths differ by more than this, more edits are needed than are allowed.
    const std::size_t allowed = std::max<std::size_t>(candidate.size() / 3, 1);
    if (name.size() > candidate.size() + allowed || candidate.size() > name.size() + allowed) continue;
    const std::size_t edits = edits_between(name, candidate);
    if (edits > allowed || (!best.empty() && edits >= fewest)) continue;
    best = candidate;
    fewest = edits;
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  const std::string best = nearest(name, known);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

}  // namespace plexaura
