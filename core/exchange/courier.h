#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/export.h"

namespace plexaura {

// Brings samples from rank 0, which reads those of all ranks, to the others, while all of them compute. They travel in
// streams of parcels, each from its first parcel to its close(), which all ranks call; a parcel is never empty. A stream
// may be used again when it is closed. Called by the thread that trains.
class PLEXAURA_API Courier {
 public:
  enum class Stream : std::uint8_t { training, validation };

  virtual ~Courier();

  // On rank 0: hands over the next parcel for another rank. Comes back while it is on its way; waits only where that
  // rank is far behind.
  virtual void send(Stream stream, int to, std::span<const std::byte> parcel) = 0;

  // On the others: the next parcel; none where rank 0 has closed the stream. `what` names what it holds.
  virtual std::optional<std::vector<std::byte>> receive(Stream stream, std::string_view what) = 0;

  // On rank 0: nothing more comes. On the others, where they have not received that yet: drops all that comes before
  // it. With `in_error`, for a run that ends, it waits for nobody, and this rank takes no more parcels.
  virtual void close(Stream stream, bool in_error) noexcept = 0;
};

}  // namespace plexaura
