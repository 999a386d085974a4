#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/export.h"
#include "core/device/backend.h"
#include "core/tensor/dtype.h"

// Sums over ranks of which each has a device of its own, made by the devices with a library of theirs: nothing passes
// through the memory of hosts.

namespace plexaura {

// What one rank has of them. It waits for nobody when it is destroyed: unless all ranks have called end(), a rank that still
// sums with the others then ends with an error. Functions may be called from any thread, but sum() from one at a time.
class PLEXAURA_API DeviceSums {
 public:
  virtual ~DeviceSums();
  // Enqueues on the copy stream the sum over all ranks of `count` floating elements in device memory, in place. All ranks enqueue the same, in
  // the same order, and get the same bits; the order of additions is the library's. Not within Backend::record().
  // A sum that does not end within the deadline after this device has come to it, or that the library gives up, is
  // ended with all behind it: the stream goes on, with anything in their memory, and check() throws.
  virtual void sum(DType dtype, Address data, std::int64_t count) = 0;
  // Throws DeviceError where a sum has failed, or this rank has given up.
  virtual void check() const = 0;
  // Ends all sums under way, as if they had failed.
  virtual void give_up() noexcept = 0;
  // Leaves the library in order. All ranks, after the last sum of each is done; nothing more can be summed. A rank that
  // does not come is waited for until the deadline.
  virtual void end() noexcept {}
};

// A backend may be one, too: dynamic_cast tells.
class PLEXAURA_API SumsOnDevices {
 public:
  virtual ~SumsOnDevices();
  // What sums: "NCCL 2.28.9". Empty where the library is missing, and then nothing else is asked.
  virtual std::string sums_library() const = 0;
  // Of the device, among those of its machine: equal in two processes that use the same one.
  virtual std::string device_identity() const = 0;
  // By which ranks find each other: made by one of them, and brought to all.
  virtual std::string make_sums_token() = 0;
  // All ranks together, of which each brings its number. DeviceError where one does not come within half of the
  // deadline: then one that has failed at once can still wait for the others.
  virtual std::unique_ptr<DeviceSums> join_sums(const std::string& token, int rank, int ranks,
                                                double deadline_seconds) = 0;
};

}  // namespace plexaura
