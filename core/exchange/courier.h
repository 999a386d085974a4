#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/export.h"

namespace plexaura {

// Brings samples from rank 0, which reads them for all ranks, to the other ranks, while all of them compute.
// They travel in streams of parcels. A stream begins with its first parcel and ends with close(), which all
// ranks call; after that it may be used again. A parcel is never empty. Only the training thread calls these
// functions.
class PLEXAURA_API Courier {
 public:
  enum class Stream : std::uint8_t { training, validation };

  virtual ~Courier();

  // On rank 0: sends the next parcel to another rank. Returns before it has arrived. Waits only if that rank
  // is far behind.
  virtual void send(Stream stream, int to, std::span<const std::byte> parcel) = 0;

  // On other ranks: returns the next parcel, or nothing if rank 0 has closed the stream. `what` names its
  // contents in messages.
  virtual std::optional<std::vector<std::byte>> receive(Stream stream, std::string_view what) = 0;

  // On rank 0: ends the stream. On other ranks: drops all parcels up to the end of the stream, unless its end was
  // received already. `in_error` is true when the run fails: then the call waits for no rank, and this rank receives no
  // more parcels.
  virtual void close(Stream stream, bool in_error) noexcept = 0;
};

}  // namespace plexaura
