#include "distributed/communicator/time_calls.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/clock.h"

namespace plexaura {
namespace {

constexpr int least_calls = 3;
constexpr int most_calls = 15;

// Returns the seconds of the slowest rank.
double of_slowest(Communicator& ranks, double seconds, std::string_view what) {
  const auto mine = std::llround(1e9 * seconds);
  std::int64_t most = 0;
  for (const std::string& theirs : ranks.gather_all(std::to_string(mine), what))
    most = std::max<std::int64_t>(most, std::stoll(theirs));
  return 1e-9 * static_cast<double>(most);
}

double time_calls(Communicator& ranks, int times, const SizedCall& call, std::int64_t bytes,
                  std::string_view what) {
  const auto timed = [&] {
    const double begin = seconds_now();
    call(bytes);
    return seconds_now() - begin;
  };
  return time_of(ranks, times, timed, what);
}

}  // namespace

double time_of(Communicator& ranks, int times, const std::function<double()>& timed, std::string_view what) {
  std::vector<double> taken;
  for (int i = 0; i < times; ++i) taken.push_back(timed());
  std::ranges::nth_element(taken, taken.begin() + times / 2);
  return of_slowest(ranks, taken[static_cast<std::size_t>(times / 2)], what);
}

double latency_of(Communicator& ranks, const SizedCall& call, std::string_view what) {
  time_calls(ranks, 1, call, least_call_bytes, what);
  return time_calls(ranks, most_calls, call, least_call_bytes, what);
}

// Times calls of a size that takes a measurable time. The calls follow each other without a pause, because a
// link may transmit the first bytes faster than later ones.
CallSpeed speed_of(Communicator& ranks, const SizedCall& call, const CallEffort& effort,
                   std::string_view what) {
  const auto time = [&](int times, std::int64_t bytes) {
    return time_calls(ranks, times, call, bytes, what);
  };
  CallSpeed speed{.latency = latency_of(ranks, call, what)};
  std::int64_t bytes = std::min(effort.first_bytes, effort.most_bytes);
  while (bytes < effort.most_bytes && time(1, bytes) < effort.seconds_of_call)
    bytes = std::min(2 * bytes, effort.most_bytes);
  double seconds = time(least_calls, bytes);
  const double more = effort.seconds_for_calls / std::max(seconds, 1e-9) - least_calls;
  if (more > least_calls) seconds = time(static_cast<int>(std::min<double>(more, most_calls)), bytes);
  if (seconds > speed.latency)
    speed.bytes_per_second = static_cast<double>(bytes - least_call_bytes) / (seconds - speed.latency);
  return speed;
}

}  // namespace plexaura
