#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor/dtype.h"

namespace plexaura {

enum class Call : std::uint32_t {
  barrier,
  sum,
  sum_window,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  gather,
  allocate,
  send,
  receive,
  duplicate,
  split,
  leave,           // the rank has finished its work, and leaves
  leave_in_error,  // the rank has failed, leaves, and reports the error itself
};

// Describes a collective call before a rank takes part in it, so that ranks with different calls find this
// out before any data moves. A plain value, which lies in shared memory and is sent as bytes.
struct CallSignature {
  std::uint64_t sequence = 0;  // number of the call in this communicator; set by the call check
  std::uint64_t what_hash = 0;
  // The number of elements, or of bytes if there is no element type, or the bytes of each block. For an error
  // it is the exit status.
  std::int64_t count = 0;
  std::int64_t place = 0;  // offset in a window, or number of the other rank
  Call call = Call::barrier;
  DType dtype = DType::uint8;
  std::uint8_t pace = 0;        // pace of a sum, which rank 0 has chosen; not compared
  std::array<char, 98> what{};  // name of the call, shortened if too long; ends with a zero byte

  std::string_view phrase() const { return what.data(); }
};

CallSignature announce(Call call, std::string_view what, DType dtype = DType::uint8, std::int64_t count = 0,
                       std::int64_t place = 0);

// True if two ranks make the same call. Leaving matches leaving, with or without an error.
bool match(const CallSignature& a, const CallSignature& b);

bool leaves(const CallSignature& signature);

// Returns, for Call::leave_in_error, the exit status of that rank's program.
inline int exit_status(const CallSignature& signature) { return static_cast<int>(signature.count); }

// Returns a text such as "'bucket 3 of step 17' (sum of 4096 float32)".
std::string describe(const CallSignature& signature);

// Returns the sentence of the error for two ranks whose calls do not match.
std::string describe_mismatch(int rank_a, const CallSignature& a, int rank_b, const CallSignature& b);

}  // namespace plexaura
