#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/tensor/shape.h"

namespace plexaura {

// A value that a reference kernel reads or writes: host memory, row-major, without padding. The data is null
// for an output that no one reads, and for an input that the kernel does not read.
struct HostView {
  std::byte* data = nullptr;
  const TensorType* type = nullptr;

  const Shape& shape() const { return type->shape; }
  DType dtype() const { return type->dtype; }
  std::int64_t elements() const { return type->shape.elements(); }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

struct HostCall {
  std::span<const HostView> inputs;
  std::span<const HostView> outputs;  // outputs, uninitialised
};

// Copies the elements of a value to one of the same size in bytes. Does nothing if the target is null or the
// same memory.
inline void copy_bytes(const HostView& from, const HostView& to) {
  if (to.data == nullptr || to.data == from.data) return;
  std::memcpy(to.data, from.data, static_cast<std::size_t>(to.type->bytes()));
}

}  // namespace plexaura
