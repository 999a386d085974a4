#include "models/layers/functional.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "core/ops/dropout.h"
#include "core/ops/layer_norm.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura::layers {

const std::vector<std::string>& Activation::names() {
  static const std::vector<std::string> names{"relu", "sigmoid", "tanh"};
  return names;
}

Activation::Activation(std::string_view name) : name_(name) {
  if (std::ranges::find(names(), name_) == names().end())
    throw UserError(fmt::format("there is no activation '{}'{}", name_, did_you_mean(name_, names())));
}

Node Activation::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  if (name_ == "relu") return relu(x);
  return name_ == "sigmoid" ? sigmoid(x) : tanh(x);
}

Node Flatten::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return flatten(x);
}

Node Dropout::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return dropout(x, {.p = p_});
}

Node Standardise::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return standardise(x);
}

}  // namespace plexaura::layers
