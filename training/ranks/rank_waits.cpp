#include "training/ranks/rank_waits.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <string>

namespace plexaura {
namespace {

constexpr double least_seconds = 0.1;
constexpr double least_share = 0.05;

// Sorts ranks from the shortest wait to the longest.
std::vector<RankWaits::Rank> sorted(std::vector<RankWaits::Rank> ranks) {
  std::ranges::stable_sort(ranks, {}, &RankWaits::Rank::seconds);
  return ranks;
}

// Returns the median wait, in seconds, of the ranks from index `first` on. The ranks must be sorted by their
// waits.
double median(const std::vector<RankWaits::Rank>& ranks, std::size_t first) {
  const std::size_t count = ranks.size() - first;
  return (ranks[first + (count - 1) / 2].seconds + ranks[first + count / 2].seconds) / 2;
}

}  // namespace

double RankWaits::share() const {
  double waited = 0;
  for (const Rank& rank : ranks) waited += rank.seconds;
  const double all = epoch_seconds * static_cast<double>(ranks.size());
  return all > 0 ? std::min(waited / all, 1.0) : 0;
}

std::optional<RankWaits::Straggler> RankWaits::straggler() const {
  if (ranks.size() < 2 || !meet_in_steps) return std::nullopt;
  const std::vector<Rank> all = sorted(ranks);
  const double seconds = median(all, 1) - all[0].seconds;
  if (seconds < std::max(least_seconds, least_share * epoch_seconds)) return std::nullopt;
  return Straggler{all[0].number, seconds};
}

RankWaits gather_waits(Collective& ranks, const RankWaits::Rank& mine, double epoch_seconds) {
  const std::string text = fmt::format("{} {}", mine.number, mine.seconds);
  RankWaits waits{.epoch_seconds = epoch_seconds};
  for (const std::string& other : ranks.gather_all(text, "how long the ranks have waited")) {
    const std::size_t space = other.find(' ');
    waits.ranks.push_back({std::stoi(other.substr(0, space)), std::stod(other.substr(space + 1))});
  }
  return waits;
}

}  // namespace plexaura
