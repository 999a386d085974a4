#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace plexaura {

// Classes and functions that all families of elementwise ops use. Users call the builders of unary.h and
// binary.h instead.

// The options of a function: numbers, in the order in which its functor expects them.
struct FunctionOptions {
  std::vector<std::string_view> names = {};  // must have static storage
  std::vector<double> values = {};

  static void fields(auto& self, auto& visitor) {
    for (std::size_t i = 0; i < self.values.size(); ++i) visitor(self.names[i], self.values[i]);
  }
};

// The class of every op with a functor. Its kernels read the options.
using FunctionOp = OpWith<FunctionOptions>;

// The reference kernel that is generated from a function's line in ops.def.
struct FunctionKernel {
  std::string_view name;
  HostKernel kernel;
};

// Returns the kernel of this name, or null if there is none.
HostKernel kernel_of(std::string_view name, std::span<const FunctionKernel> kernels);

// y = f(x), of the same type and shape; floating only. The op has the name of its function. Its precision is
// wide if its results, or the terms of its gradient, leave the range of float16 or lose important digits:
// powers, exponentials and logarithms.
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
  std::string_view name_;  // has static storage
  Vjp vjp_;
  Precision precision_;
};

// Throws RuleError unless `count` inputs are given.
void require_inputs(std::span<const TensorType> inputs, std::size_t count);
// Throws RuleError unless the dtype is floating.
void require_floating(const TensorType& type);
// Throws RuleError, which suggests cast(), unless both have the same dtype.
void require_same_dtype(const TensorType& a, const TensorType& b);
// Returns the common dtype with the broadcast shape. Throws RuleError if the dtypes differ.
TensorType broadcast_types(const TensorType& a, const TensorType& b);

}  // namespace plexaura
