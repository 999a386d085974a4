#pragma once

#include <cstdint>

#include "core/params/parameter_store.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// Of a tensor's bytes, behind what was hashed before it: see core/base/fnv.h.
std::uint64_t hash_of(const Tensor& tensor, std::uint64_t before);

// Of all parameters and buffers of a store, and of the state that training keeps for them: equal where the
// values are, wherever they lie.
std::uint64_t weights_hash(const ParameterStore& store);
std::uint64_t states_hash(const ParameterStore& store);

}  // namespace plexaura
