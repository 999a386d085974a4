#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

// One piece of work that a program enqueues on a device.
struct EnqueuedCall {
  enum class Kind : std::uint8_t {
    kernel,   // a launch of a kernel of the backend's own
    library,  // a call of a library, which may launch several kernels
    copy      // a copy between device and staging memory, or within either of them
  };
  Kind kind = Kind::kernel;
  std::string what;       // the op, or the ops of a region, such as "moments+normalise+relu"
  double bytes = 0;       // bytes read and written; each operand counts once, in full
  double operations = 0;  // multiplications and additions of matrix products and convolutions
  double seconds = 0;     // the least seconds on the device; 0 for work that runs beside the kernels
  bool recorded = false;  // true if it is part of a recording
};

// The work that was enqueued between begin_account() and end_account().
struct WorkAccount {
  std::vector<EnqueuedCall> calls;
  std::size_t replays = 0;  // number of replays of recordings
  // The least seconds of all replays, if work that may run at the same time does not slow other work down.
  double seconds_of_chains = 0;
};

// A backend for a device that is not present. It offers the kernels that the device would have, and allocates
// memory. While programs are compiled, it computes the values that compiling needs, such as folded constants.
// Between begin_account() and end_account() it computes nothing and counts the enqueued work, so that a step
// can be judged without the device.
class PLEXAURA_API DescribedBackend : public Backend {
 public:
  ~DescribedBackend() override;

  // The speeds from which seconds are estimated, such as "790 TFLOP/s in 16 bits, 4.3 TB/s".
  virtual std::string speeds() const = 0;
  virtual std::size_t memory_bytes() const = 0;     // bytes of the device's memory
  virtual std::size_t most_bytes_used() const = 0;  // the largest number of bytes that were in use at once

  virtual void begin_account() = 0;
  virtual WorkAccount end_account() = 0;
};

}  // namespace plexaura
