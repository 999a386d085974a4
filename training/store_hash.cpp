#include "training/store_hash.h"

#include <span>

#include "core/fnv.h"

namespace plexaura {

std::uint64_t hash_of(const Tensor& tensor, std::uint64_t before) {
  return fnv(std::span(tensor.data(), tensor.bytes()), before);
}

std::uint64_t weights_hash(const ParameterStore& store) {
  std::uint64_t hash = fnv_start;
  for (const ParameterSpec& spec : store.specs()) hash = hash_of(store.read(spec.name), hash);
  return hash;
}

std::uint64_t states_hash(const ParameterStore& store) {
  std::uint64_t hash = fnv_start;
  for (std::int64_t state = 0; state < store.states(); ++state)
    for (const ParameterSpec& spec : store.specs())
      if (spec.role == ParameterRole::trainable) hash = hash_of(store.read_state(state, spec.name), hash);
  return hash;
}

}  // namespace plexaura
