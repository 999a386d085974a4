#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

// One thing that a program has a device do.
struct EnqueuedCall {
  enum class Kind : std::uint8_t {
    kernel,   // a launch of the backend's own
    library,  // one call of a library, which may launch several kernels
    copy      // between device and staging memory, or within one
  };
  Kind kind = Kind::kernel;
  std::string what;       // the op, or the ops of a region: "moments+normalise+relu"
  double bytes = 0;       // read and written; a value that the call is given counts once, and whole
  double operations = 0;  // multiplications and additions, of products and convolutions
  double seconds = 0;     // the least that the device needs; 0 for what runs beside the kernels
  bool recorded = false;  // a part of a recording
};

// What was enqueued meanwhile.
struct WorkAccount {
  std::vector<EnqueuedCall> calls;
  std::size_t replays = 0;       // of recordings
  double seconds_of_chains = 0;  // the least that they need if what may run side by side slows nothing down
};

// A backend for a device that is not there. It offers the kernels that the device would be offered, holds memory, and
// computes what is asked of it while programs are compiled. While it keeps an account, nothing is computed: what is
// enqueued is counted instead, so that a step can be judged without the device.
class PLEXAURA_API DescribedBackend : public Backend {
 public:
  ~DescribedBackend() override;

  virtual std::string speeds() const = 0;        // "790 TFLOP/s in 16 bits, 4.3 TB/s": what seconds come from
  virtual std::size_t memory_bytes() const = 0;  // that the device has
  virtual std::size_t most_bytes_used() const = 0;  // of it, at one time so far

  virtual void begin_account() = 0;
  virtual WorkAccount end_account() = 0;
};

}  // namespace plexaura
