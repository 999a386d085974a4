#include "training/loop/dead_gradients.h"

#include <fmt/format.h>

#include "core/vm/watch.h"

namespace plexaura {

namespace {

// Compares bytes, so that large gradients are not converted. The highest bit of an element is its sign.
bool is_zero(const Tensor& tensor) {
  const std::size_t size = size_of(tensor.dtype());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) {
    const std::byte magnitude = tensor.data()[i] & (i % size == size - 1 ? std::byte{0x7f} : std::byte{0xff});
    if (magnitude != std::byte{0}) return false;
  }
  return tensor.bytes() > 0;
}

}  // namespace

std::vector<std::string> dead_gradients(const ParameterStore& store) {
  std::vector<std::string> found;
  for (const ParameterSpec& spec : store.specs()) {
    if (spec.role != ParameterRole::trainable) continue;
    const Tensor gradient = store.read_gradient(spec.name);
    if (is_zero(gradient))
      found.push_back(fmt::format("'{}' is zero everywhere", spec.name));
    else if (!store.types().scales_loss() && !all_finite(gradient))
      found.push_back(fmt::format("'{}' has {}", spec.name, first_bad(gradient)));
  }
  return found;
}

}  // namespace plexaura
