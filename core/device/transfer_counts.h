#pragma once

#include <cstdint>

#include "core/base/export.h"

namespace plexaura {

// Since a backend was opened. A training step on a device makes two copies, of its samples and of what it measured, and none of
// them within a recording. The host waits three times, for earlier steps: until the staging memory of the samples may be written
// again, until the device has read the samples in whose place new ones come, and for what the step before measured.
struct TransferCounts {
  std::uint64_t copies = 0;           // between host and device, those of each replay included
  std::uint64_t recorded_copies = 0;  // of them those within recordings
  // Of the host, for events that a stream records; for those that have passed already, too.
  std::uint64_t waits = 0;
};

// A backend may be one, too: dynamic_cast tells.
class PLEXAURA_API CountsTransfers {
 public:
  virtual ~CountsTransfers();
  virtual TransferCounts transfers() const = 0;  // any thread
};

}  // namespace plexaura
