#pragma once

#include <cstddef>

#include "backends/cuda/runtime/runtime.h"

namespace plexaura::cuda {

// Owns a piece of pinned host memory.
class Pinned {
 public:
  explicit Pinned(std::size_t bytes) : address_(runtime::allocate_pinned(bytes)) {}
  ~Pinned() { runtime::free_pinned(address_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::byte* address() const { return address_; }

 private:
  std::byte* address_;
};

}  // namespace plexaura::cuda
