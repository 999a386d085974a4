#pragma once

#include <array>
#include <cstdint>

#include "distributed/wire/call_signature.h"

namespace plexaura {

// The length of the messages that carry an array, and how many bytes a rank sends before it waits for
// messages of other ranks.
struct Pace {
  std::int64_t message_bytes;
  std::int64_t bytes_ahead;
};

// Chooses the fastest pace by the times of earlier calls with arrays of about the same size. Each pace is
// tried once, and again from time to time. Sums have the same bits with each pace, but all ranks need the
// same one: rank 0 chooses, and passes its choice when ranks meet for a call. Times of other ranks are not
// used.
//
// Between 2 to 16 hosts with links of 20 Mbit/s to 1 Gbit/s, short messages are faster: they wait in no
// queue, and messages of several ranks to one rank do not overflow the queue of its link. 12 hosts with 20
// Mbit/s took 1.6 to 2.1 times as long with long messages. With few hosts and links that transmit a message in less
// than a millisecond, more messages ahead bridge the times in which a rank is not scheduled: 3 hosts with 240 Mbit/s
// took 8 % less time. Between hosts whose links are faster than a core, long messages take less than half of the time
// (docs/lab/performance.md).
class PaceChoice {
 public:
  std::uint8_t next(const CallSignature& call) const;
  // Records the time of half a call. A sum has two halves; a call that only reduces or only gathers has one
  // half.
  void took(const CallSignature& call, double seconds_of_half);

  static const Pace& pace(std::uint8_t number);

 private:
  static constexpr std::int64_t pace_count = 3;
  struct Calls {
    std::int64_t count = 0;
    // Mean seconds with each pace; new calls and short times count more.
    std::array<double, pace_count> seconds{};
  };
  static const std::array<Pace, pace_count> paces;
  static std::size_t size_class(const CallSignature& call);

  std::array<Calls, 64> calls_;  // times of calls, by the binary logarithm of their bytes
};

}  // namespace plexaura
