#include "training/ranks/store_hash.h"

#include <span>

#include "core/base/fnv.h"

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
  if (!store.types().scales_loss()) return hash;
  const LossScale scale = store.read_loss_scale();
  return fnv(std::as_bytes(std::span(&scale, 1)), hash);
}

}  // namespace plexaura
