#pragma once

#include <cstdint>

#include "core/base/export.h"

namespace plexaura {

// Copies and waits since a backend was opened. A training step on a device makes two copies, of its samples
// and of its loss and metrics; neither is in a recording. The host waits three times, always for earlier
// steps: until it may write the samples' staging memory again, until the device has read the samples that the
// new ones replace, and for the loss and metrics of the step before.
struct TransferCounts {
  std::uint64_t copies = 0;           // number of copies between host and device, including copies in replays
  std::uint64_t recorded_copies = 0;  // number of these copies that are in recordings
  // Waits of the host for events that a stream records, also for events that have passed already.
  std::uint64_t waits = 0;
};

// A backend may implement this interface too. Find out with dynamic_cast.
class PLEXAURA_API CountsTransfers {
 public:
  virtual ~CountsTransfers();
  virtual TransferCounts transfers() const = 0;  // any thread may call transfers()
};

}  // namespace plexaura
