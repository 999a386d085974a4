#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/cuda/runtime/runtime.h"
#include "core/device/backend.h"
#include "core/tensor/dtype.h"

// All that the plugin uses of NCCL, NVIDIA's library for sums over processes that each have a GPU. So the
// plugin can be built without NCCL, and tested without a GPU. A function that fails throws DeviceError with
// the library's message.

namespace plexaura::cuda::vendor {

// Sums over a group of processes. Any thread may call the functions, but sum() only one thread at a time.
class Sums {
 public:
  virtual ~Sums() = default;  // gives up unfinished sums
  // Enqueues the sum of `count` floating elements in the GPU's memory over all processes, in place.
  virtual void sum(runtime::Stream* stream, DType dtype, Address data, std::int64_t count) = 0;
  // Returns an error that the library has met since joining, or an empty string.
  virtual std::string failure() = 0;
  // Ends unfinished sums, also those in the stream, which continues. After this, nothing more can be summed.
  // If the library does not return from this call within the deadline, the call is abandoned.
  virtual void give_up() noexcept = 0;
  // Leaves the group. The other processes, whose sums are done too, call it at the same time. Gives up if
  // that takes longer than the deadline.
  virtual void end() noexcept = 0;
};

// The data for joining a group. One process makes the token, and passes it to all others.
struct Membership {
  std::string token;
  int rank;
  int ranks;
};

std::string sums_version();  // such as "NCCL 2.28.9"; empty if there is no library
std::string make_token();
std::unique_ptr<Sums> join(const Membership& membership, double deadline_seconds);

}  // namespace plexaura::cuda::vendor
