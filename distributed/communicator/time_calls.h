#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>

#include "distributed/communicator/communicator.h"

namespace plexaura {

// Collective. Each rank calls `timed`, which returns seconds, `times` times and takes the median. Returns the
// longest median of any rank, on all ranks.
double time_of(Communicator& ranks, int times, const std::function<double()>& timed, std::string_view what);

// A collective call over the given number of bytes.
using SizedCall = std::function<void(std::int64_t bytes)>;

// The time of a call as a linear function of its bytes.
struct CallSpeed {
  double latency = 0;  // seconds of a call with almost no data
  double bytes_per_second = std::numeric_limits<double>::infinity();
};

// Limits of a measurement: how large the timed calls become, and how long they are repeated. Sizes are
// multiples of `least_call_bytes`.
struct CallEffort {
  std::int64_t first_bytes = 0;
  std::int64_t most_bytes = 0;
  double seconds_of_call = 0;    // sizes grow until one call takes this long
  double seconds_for_calls = 0;  // total time of the calls at the final size, which are 3 to 18
};
inline constexpr std::int64_t least_call_bytes = 64;

// Returns the speed of a call. Collective; `call` is collective too. The times are those of the slowest rank.
CallSpeed speed_of(Communicator& ranks, const SizedCall& call, const CallEffort& effort,
                   std::string_view what);
double latency_of(Communicator& ranks, const SizedCall& call, std::string_view what);

}  // namespace plexaura
