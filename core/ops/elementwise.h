#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace plexaura {

// What the families of elementwise ops share. Not for users: they call the builders of unary.h and binary.h.

// The options of a function: numbers, in the order in which its functor takes them.
struct FunctionOptions {
  std::vector<std::string_view> names = {};  // of static storage
  std::vector<double> values = {};

  static void fields(auto& self, auto& visitor) {
    for (std::size_t i = 0; i < self.values.size(); ++i) visitor(self.names[i], self.values[i]);
  }
};

// What every op with a functor is: its kernels read the options.
using FunctionOp = OpWith<FunctionOptions>;

// The reference kernel that is made of a function's line in ops.def.
struct FunctionKernel {
  std::string_view name;
  HostKernel kernel;
};

// That of this name; null where there is none.
HostKernel kernel_of(std::string_view name, std::span<const FunctionKernel> kernels);

// y = f(x), same type and shape; floating only. Named by its function, which is wide where its results, or the terms
// of its gradient, leave the range of float16 or lose the digits that matter: powers, exponentials and logarithms.
class PLEXAURA_API UnaryOp : public FunctionOp {
 public:
  using Vjp = std::function<Node(const Node& x, const Node& y, const Node& grad)>;
  UnaryOp(std::string_view name, Vjp vjp, FunctionOptions options = {},
          Precision precision = Precision::follows)
      : OpWith(std::move(options)), name_(name), vjp_(std::move(vjp)), precision_(precision) {}

  std::string_view name() const override { return name_; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  HostKernel reference() const override;
  OpTraits traits() const override { return {.elementwise = true, .precision = precision_}; }

 private:
  std::string_view name_;  // of static storage
  Vjp vjp_;
  Precision precision_;
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
