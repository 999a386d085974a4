#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>

#include "distributed/communicator/communicator.h"

namespace plexaura {

// The median of several times that this rank measures, on the rank where that is longest: the same on all of them.
// Collective.
double time_of(Communicator& ranks, int times, const std::function<double()>& timed, std::string_view what);

// A call of all ranks over so many bytes.
using SizedCall = std::function<void(std::int64_t bytes)>;

// What it takes: a line over its bytes.
struct CallSpeed {
  double latency = 0;  // seconds, with next to nothing to send
  double bytes_per_second = std::numeric_limits<double>::infinity();
};

// What such calls are measured by; sizes are multiples of `least_call_bytes`.
struct CallEffort {
  std::int64_t first_bytes = 0;
  std::int64_t most_bytes = 0;
  double seconds_of_call = 0;    // that is long enough
  double seconds_for_calls = 0;  // at that size; at least three of them, whatever they take
};
inline constexpr std::int64_t least_call_bytes = 64;

// Collective, and so is the call. The slowest rank counts.
CallSpeed speed_of(Communicator& ranks, const SizedCall& call, const CallEffort& effort,
                   std::string_view what);
double latency_of(Communicator& ranks, const SizedCall& call, std::string_view what);

}  // namespace plexaura
