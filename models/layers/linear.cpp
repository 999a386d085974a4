#include "models/layers/linear.h"

#include <cmath>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/matmul.h"

namespace plexaura::layers {

namespace {

void check_tied(const Parameter* tied, const Shape& shape) {
  if (tied != nullptr && tied->shape() != shape)
    throw UserError(
        fmt::format("a linear layer with weight {} cannot be tied to a weight {}; the shapes must be equal",
                    to_string(shape), to_string(tied->shape())));
}

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, LinearOptions options) : tied_weight_(options.tied_weight) {
  check_tied(tied_weight_, {out, in});
  const double limit = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(in, 1)));
  if (tied_weight_ == nullptr) weight_ = std::make_unique<Parameter>(Shape{out, in}, options.weight);
  if (options.bias)
    bias_ = std::make_unique<Parameter>(Shape{out}, options.bias_start.value_or(Initialiser::uniform(limit)));
}

void Linear::members(MemberVisitor& visit) {
  visit("weight", weight());
  visit("bias", bias_);
}

Node Linear::operator()(Operand x) const {
  const auto call = enter_unseen(x);
  Graph& graph = x.node().graph();
  const Node product = matmul(x, weight().in(graph), {.transpose_b = true});
  return bias_ ? product + bias_->in(graph) : product;
}

}  // namespace plexaura::layers
