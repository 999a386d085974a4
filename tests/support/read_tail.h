#pragma once

#include "core/device/transfer.h"
#include "core/params/parameter_store.h"

namespace plexaura::testing {

// An element of the tail as the last step left it.
inline double read_tail(const ParameterStore& store, TailSlot slot) {
  const std::size_t element = size_of(store.dtype());
  const auto index =
      static_cast<std::size_t>(store.placement().tail_offset()) + static_cast<std::size_t>(slot);
  Tensor value(TensorType{store.dtype(), {}});
  copy_to_host(store.backend(), value.data(), store.gradients() + index * element, element);
  return value.to_doubles()[0];
}

}  // namespace plexaura::testing
