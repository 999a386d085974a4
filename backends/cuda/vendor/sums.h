#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/cuda/runtime/runtime.h"
#include "core/device/backend.h"
#include "core/tensor/dtype.h"

// All that the plugin asks of NVIDIA's library for sums over processes that each have a GPU, so that it can be built without
// that, and tested without a GPU. A function that fails throws DeviceError with the library's words.

namespace plexaura::cuda::vendor {

// This process and the others. Functions may be called from any thread, but sum() from one at a time.
class Sums {
 public:
  virtual ~Sums() = default;  // gives up
  // Enqueues the sum of `count` floating elements in the GPU's memory over all processes, in place.
  virtual void sum(runtime::Stream* stream, DType dtype, Address data, std::int64_t count) = 0;
  // What the library has met since; empty: nothing.
  virtual std::string failure() = 0;
  // Ends what is under way, also in the stream, which goes on. Nothing more can be summed. A library that does not return
  // from that is left alone after the deadline.
  virtual void give_up() noexcept = 0;
  // Leaves in order, together with the other processes, whose sums are done, too. Gives up where that takes longer than the
  // deadline.
  virtual void end() noexcept = 0;
};

// The token is the same for all processes, and made by one of them.
struct Membership {
  std::string token;
  int rank;
  int ranks;
};

std::string sums_version();  // "NCCL 2.28.9"; empty where there is no library
std::string make_token();
std::unique_ptr<Sums> join(const Membership& membership, double deadline_seconds);

}  // namespace plexaura::cuda::vendor
