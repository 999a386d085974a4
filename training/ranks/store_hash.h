#pragma once

#include <cstdint>

#include "core/params/parameter_store.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// Continues the hash `before` with the bytes of a tensor: see core/base/fnv.h.
std::uint64_t hash_of(const Tensor& tensor, std::uint64_t before);

// Return the hash of all parameters and buffers of a store, and the hash of the optimizer's state and loss scale.
// Both depend on the values and not on their placement.
std::uint64_t weights_hash(const ParameterStore& store);
std::uint64_t states_hash(const ParameterStore& store);

}  // namespace plexaura
