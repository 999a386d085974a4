#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/tensor/shape.h"

namespace plexaura {

// A value for a reference kernel: host memory, row-major, no padding. The data of an output that nobody wants
// is null, and so is that of an input that the kernel does not read.
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
  std::span<const HostView> outputs;  // uninitialised
};

// Copies the elements of a value to one of as many bytes, unless nobody wants that one or it is the same memory.
inline void copy_bytes(const HostView& from, const HostView& to) {
  if (to.data == nullptr || to.data == from.data) return;
  std::memcpy(to.data, from.data, static_cast<std::size_t>(to.type->bytes()));
}

}  // namespace plexaura
