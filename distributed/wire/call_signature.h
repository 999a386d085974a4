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
  leave,           // the rank is done
  leave_in_error,  // the rank has failed, and reports that itself
};

// What a rank says before it takes part in a collective call, so that ranks which do not mean the same call
// find out before any data moves. A plain value: it lies in shared memory and travels as bytes.
struct CallSignature {
  std::uint64_t sequence = 0;  // sequence number of the call in this communicator; set by the call check
  std::uint64_t what_hash = 0;
  std::int64_t count =
      0;  // elements, or bytes where there is no element type, or of each block; of an error its exit status
  std::int64_t place = 0;  // offset in a window, or number of the other rank
  Call call = Call::barrier;
  DType dtype = DType::uint8;
  std::uint8_t pace = 0;        // of a sum: what rank 0 says; no part of what is compared
  std::array<char, 98> what{};  // cut when longer; ends with a zero

  std::string_view phrase() const { return what.data(); }
};

CallSignature announce(Call call, std::string_view what, DType dtype = DType::uint8, std::int64_t count = 0,
                       std::int64_t place = 0);

// Whether two ranks mean the same call. Leaving matches leaving, in error or not.
bool match(const CallSignature& a, const CallSignature& b);

bool leaves(const CallSignature& signature);

// Of Call::leave_in_error: what the program of that rank returns to the shell.
inline int exit_status(const CallSignature& signature) { return static_cast<int>(signature.count); }

// "'bucket 3 of step 17' (sum of 4096 float32)"
std::string describe(const CallSignature& signature);

// The sentence for two ranks that do not match.
std::string describe_mismatch(int rank_a, const CallSignature& a, int rank_b, const CallSignature& b);

}  // namespace plexaura
