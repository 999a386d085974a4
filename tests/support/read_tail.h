#pragma once

#include "core/device/transfer.h"
#include "core/params/parameter_store.h"

namespace plexaura::testing {

// Returns an element of the tail after the last step.
inline double read_tail(const ParameterStore& store, TailSlot slot) {
  const Placement& placement = store.placement();
  const std::int64_t element = placement.tail_offset() + static_cast<std::int64_t>(slot);
  Tensor value(TensorType{store.dtype(), {}});
  copy_to_host(store.backend(), value.data(),
               store.gradients() + placement.bytes_before(ArenaKind::gradient, element), value.bytes());
  return value.to_doubles()[0];
}

}  // namespace plexaura::testing
