#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/export.h"
#include "core/device/backend.h"
#include "core/tensor/dtype.h"

// Sums over ranks that each have a device of their own. A library of the devices adds them up; no data passes
// through the memory of hosts.

namespace plexaura {

// One rank's connection to sums by devices. The destructor does not wait for other ranks: unless all ranks have called
// end(), a rank that still sums with the others then ends with an error. Any thread may call these functions, but only
// one thread at a time may call sum().
class PLEXAURA_API DeviceSums {
 public:
  virtual ~DeviceSums();
  // Enqueues on the copy stream a sum over all ranks of `count` floating elements in device memory, in place.
  // All ranks must enqueue the same sums in the same order, and get the same bits; the library chooses the
  // order of additions. Must not be called within Backend::record(). A sum fails if it does not end within
  // the deadline, counted from when this device reaches it, or if the library gives it up. Then it and all
  // later sums end: the stream continues, their memory has undefined contents, and check() throws.
  virtual void sum(DType dtype, Address data, std::int64_t count) = 0;
  // Throws DeviceError if a sum has failed or give_up() was called.
  virtual void check() const = 0;
  // Ends all sums in progress, as if they had failed.
  virtual void give_up() noexcept = 0;
  // Disconnects from the library. All ranks call it after their last sum is done; no sums are possible
  // afterwards. Waits for the other ranks, at most until the deadline.
  virtual void end() noexcept {}
};

// A backend may implement this interface too. Find out with dynamic_cast.
class PLEXAURA_API SumsOnDevices {
 public:
  virtual ~SumsOnDevices();
  // Returns the library's name, such as "NCCL 2.28.9". Empty if the library is missing; then no other
  // function may be called.
  virtual std::string sums_library() const = 0;
  // Returns a name of the device on its machine. Two processes that use the same device get the same name.
  virtual std::string device_identity() const = 0;
  // Returns a token by which ranks find each other. One rank makes it, and sends it to all others.
  virtual std::string make_sums_token() = 0;
  // Connects the ranks. All ranks call it together, each with its number. Throws DeviceError if a rank does
  // not come within half of the deadline. So a rank whose call fails at once still has time to wait for the
  // others.
  virtual std::unique_ptr<DeviceSums> join_sums(const std::string& token, int rank, int ranks,
                                                double deadline_seconds) = 0;
};

}  // namespace plexaura
