#include "distributed/time_calls.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace plexaura {
namespace {

// The longest that any rank has taken.
double of_slowest(Communicator& ranks, double seconds, std::string_view what) {
  const auto mine = std::llround(1e9 * seconds);
  std::int64_t most = 0;
  for (const std::string& theirs : ranks.gather_all(std::to_string(mine), what))
    most = std::max<std::int64_t>(most, std::stoll(theirs));
  return 1e-9 * static_cast<double>(most);
}

}  // namespace

double time_of(Communicator& ranks, int times, const std::function<double()>& timed, std::string_view what) {
  std::vector<double> taken;
  for (int i = 0; i < times; ++i) taken.push_back(timed());
  std::ranges::nth_element(taken, taken.begin() + times / 2);
  return of_slowest(ranks, taken[static_cast<std::size_t>(times / 2)], what);
}

}  // namespace plexaura
