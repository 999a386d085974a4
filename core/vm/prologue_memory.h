#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "core/base/export.h"
#include "core/device/backend.h"

namespace plexaura {

// The values that a program computes from parameters and constants alone, such as weights in the layout of a kernel. VMs
// of one program, backend and store may share them. Then they lie in memory once, and are computed once after the store
// has changed. Any thread may call these functions.
class PLEXAURA_API PrologueMemory {
 public:
  // Returns the address of the memory, and allocates it in the first call. `bytes` is the same in each call.
  Address allocate(Backend& backend, std::size_t bytes);
  // Calls compute(), unless its last call was for this version of the store and did not throw.
  void refresh(std::uint64_t version, const std::function<void()>& compute);

 private:
  std::mutex mutex_;
  std::unique_ptr<Memory> memory_;
  std::uint64_t version_ = 0;  // of the store, when the values were computed; 0: never
};

}  // namespace plexaura
