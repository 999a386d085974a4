#include "training/loop/dead_gradients.h"

#include <fmt/format.h>

#include "core/vm/watch.h"

namespace plexaura {

namespace {

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
    if (all_zero(gradient)) found.push_back(fmt::format("'{}' is zero everywhere", name));
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
