#pragma once

#include <string_view>

#include "core/graph/op.h"

namespace plexaura {

// What the families of elementwise ops share: the op classes below are named by their function and have no
// options. Not for users: they call the builders of unary.h, binary.h and compare.h.

// y = f(x), same type and shape; floating only.
class UnaryOp : public Op {
 public:
  using Vjp = Node (*)(const Node& x, const Node& y, const Node& grad);
  UnaryOp(std::string_view name, Vjp vjp) : name_(name), vjp_(vjp) {}

  std::string_view name() const override { return name_; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  OpTraits traits() const override { return {.elementwise = true}; }

 private:
  std::string_view name_;  // of static storage
  Vjp vjp_;
};

// Throws RuleError unless `count` inputs are given.
void require_inputs(std::span<const TensorType> inputs, std::size_t count);
// Throws RuleError unless the dtype is floating.
void require_floating(const TensorType& type);
// Throws RuleError unless both have one dtype; names cast().
void require_same_dtype(const TensorType& a, const TensorType& b);
// Both of one dtype; the broadcast shape.
TensorType broadcast_types(const TensorType& a, const TensorType& b);

}  // namespace plexaura
