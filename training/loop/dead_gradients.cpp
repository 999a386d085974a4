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

// Calls visit(name, gradient) for each trainable parameter.
template <class Visit>
void visit_gradients(const ParameterStore& store, const Visit& visit) {
  for (const ParameterSpec& spec : store.specs())
    if (spec.role == ParameterRole::trainable) visit(spec.name, store.read_gradient(spec.name));
}

}  // namespace

std::vector<std::string> zero_gradients(const ParameterStore& store) {
  std::vector<std::string> found;
  visit_gradients(store, [&](const std::string& name, const Tensor& gradient) {
    if (is_zero(gradient)) found.push_back(fmt::format("'{}' is zero everywhere", name));
  });
  return found;
}

std::vector<std::string> gradients_not_finite(const ParameterStore& store) {
  std::vector<std::string> found;
  if (store.types().scales_loss()) return found;
  visit_gradients(store, [&](const std::string& name, const Tensor& gradient) {
    if (!all_finite(gradient)) found.push_back(fmt::format("'{}' has {}", name, first_bad(gradient)));
  });
  return found;
}

}  // namespace plexaura
