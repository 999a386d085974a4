#include "models/layers/functional.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <numeric>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "core/ops/activations.h"
#include "core/ops/dropout.h"
#include "core/ops/layer_norm.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/subscript.h"
#include "core/ops/unary.h"

namespace plexaura::layers {

namespace {

struct NamedFunction {
  std::string name;
  Node (*apply)(Operand);
};

const std::vector<NamedFunction>& functions() {
  static const std::vector<NamedFunction> all{
      {"relu", [](Operand x) { return relu(x); }},
      {"sigmoid", [](Operand x) { return sigmoid(x); }},
      {"tanh", [](Operand x) { return tanh(x); }},
      {"gelu", [](Operand x) { return gelu(x); }},
      {"silu", [](Operand x) { return silu(x); }},
      {"elu", [](Operand x) { return elu(x); }},
      {"leaky_relu", [](Operand x) { return leaky_relu(x); }},
  };
  return all;
}

// Returns the axis, counted from the front. Throws UserError if x does not have it.
std::int64_t axis_to_flatten(const Operand& x, std::int64_t axis) {
  const std::int64_t rank = x.node().shape().rank();
  if (axis < -rank || axis >= rank)
    throw UserError(fmt::format("{}: flatten is given {}, which has no axis {}; name one of its {} axes",
                                to_string(x.node().graph().origin_of(x.where())), to_string(x.node().type()),
                                axis, rank));
  return axis < 0 ? axis + rank : axis;
}

}  // namespace

const std::vector<std::string>& Activation::names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const NamedFunction& function : functions()) names.push_back(function.name);
    return names;
  }();
  return all;
}

Activation::Activation(std::string_view name) {
  const auto found = std::ranges::find(functions(), name, &NamedFunction::name);
  if (found == functions().end())
    throw UserError(
        fmt::format("there is no activation '{}'{}", name, did_you_mean(std::string(name), names())));
  apply_ = found->apply;
}

Node Activation::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return apply_(x);
}

Node Flatten::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  if (first_ == 1 && last_ == -1) return flatten(x);
  const std::int64_t first = axis_to_flatten(x, first_);
  const std::int64_t last = axis_to_flatten(x, last_);
  if (last < first)
    throw UserError(
        fmt::format("{}: flatten goes from axis {} to axis {}; the last must not be before the first",
                    to_string(x.node().graph().origin_of(x.where())), first, last));
  std::vector<std::int64_t> extents = x.node().shape().extents();
  const auto begin = extents.begin() + first;
  const auto end = extents.begin() + last + 1;
  *begin = std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
  extents.erase(begin + 1, end);
  return reshape(x, std::move(extents));
}

Node ReshapeSamples::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  std::vector<std::int64_t> extents = extents_;
  extents.insert(extents.begin(), x.node().shape()[0]);
  return reshape(x, std::move(extents));
}

Node Tokens::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  const Shape shape = x.node().shape();
  return permute({reshape(x, {shape[0], shape[1], -1}), x.where()}, {0, 2, 1});
}

Node LastStep::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return x.node()[{slice({}, {}), -1}];
}

Node MeanOfSteps::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return mean(x, 1);
}

Node Upsample::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  return interpolate(x, options_);
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
