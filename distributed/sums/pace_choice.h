#pragma once

#include <array>
#include <cstdint>

#include "distributed/wire/call_signature.h"

namespace plexaura {

// In what messages an array travels, and how many bytes of it a rank sends before it waits for what others send it.
struct Pace {
  std::int64_t message_bytes;
  std::int64_t bytes_ahead;
};

// Which pace is the fastest, by what calls with arrays of about the same size have taken: each is tried once, and again
// now and then. Sums have the same bits at each pace, but all ranks need the same: rank 0 chooses, and says so when
// ranks meet for a call. What the others note is not asked for.
//
// Among 2 to 16 hosts with links of 20 Mbit/s to 1 Gbit/s short messages are the faster ones: what leaves waits in no
// queue, and what several ranks send to one does not overflow that of its link. 12 hosts with 20 Mbit/s took twice as long with long
// messages. With few hosts and links that carry a message in less than a millisecond, more of them bridge the moments in which a
// rank does not come to its turn: 3 hosts with 240 Mbit/s took 8 % less time. Between hosts whose links are faster than a core,
// long ones take less than half of the time (docs/lab/performance.md).
class PaceChoice {
 public:
  std::uint8_t next(const CallSignature& call) const;
  // A sum has two halves; a call that only reduces, or only gathers, has one.
  void took(const CallSignature& call, double seconds_of_half);

  static const Pace& pace(std::uint8_t number);

 private:
  static constexpr std::int64_t pace_count = 3;
  struct Calls {
    std::int64_t count = 0;
    std::array<double, pace_count> seconds{};  // of each pace; later calls count more, and short ones
  };
  static const std::array<Pace, pace_count> paces;
  static std::size_t size_class(const CallSignature& call);

  std::array<Calls, 64> calls_;  // by the binary logarithm of the size
};

}  // namespace plexaura
