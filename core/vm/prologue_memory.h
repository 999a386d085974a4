#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "core/base/export.h"
#include "core/compile/program.h"
#include "core/device/backend.h"

namespace plexaura {

// The values that a program computes from parameters, buffers and constants alone, such as reordered weights. VMs
// of the program that have the same backend and store may share them. Then they lie in memory once, and are computed once
// after the store has changed. Any thread may call these functions.
class PLEXAURA_API PrologueMemory {
 public:
  explicit PrologueMemory(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  const std::shared_ptr<const Program>& program() const { return program_; }

  // Returns the address of the memory, and allocates it in the first call. `values` is the address of the store's values,
  // or null without a store. Throws UserError if backend or values differ from those of the first call.
  Address allocate(Backend& backend, Address values);
  // Calls compute(), unless its last successful call was for the same version of the store.
  void refresh(std::uint64_t version, const std::function<void()>& compute);

 private:
  std::shared_ptr<const Program> program_;
  std::mutex mutex_;
  const Backend* backend_ = nullptr;  // the backend of the first call of allocate(); null before
  Address values_ = nullptr;
  std::unique_ptr<Memory> memory_;
  std::uint64_t version_ = 0;  // version of the store from which the values were computed; 0: not computed
};

}  // namespace plexaura
