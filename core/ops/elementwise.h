#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace plexaura {

// Classes and functions that all families of elementwise ops use. Users call the builders of unary.h and
// binary.h instead.

// The options of an elementwise function: numbers, in the order in which the constructor of its functor
// expects them.
struct FunctionOptions {
  std::vector<std::string_view> names = {};  // the names of the numbers; the texts must have static storage
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
  std::string_view name_;  // text with static storage
  Vjp vjp_;
  Precision precision_;
};

// Appends the op with this name to the operand's graph, and returns its result.
Node unary(std::string_view name, UnaryOp::Vjp vjp, Operand x, Precision precision = Precision::follows,
           FunctionOptions options = {});

// The dtypes that a function of two values accepts.
enum class Domain { numbers, floats, integers };

struct BinaryOperands {
  const Node& a;
  const Node& b;
  const Node& y;
};

// y = f(a, b), of one dtype, with broadcasting. The op has the name of the function.
class PLEXAURA_API BinaryOp final : public FunctionOp {
 public:
  using Vjp = std::function<std::vector<Node>(const BinaryOperands& operands, const Node& grad)>;
  BinaryOp(std::string_view name, Vjp vjp, Domain domain, FunctionOptions options, Precision precision)
      : OpWith(std::move(options)),
        name_(name),
        vjp_(std::move(vjp)),
        domain_(domain),
        precision_(precision) {}

  std::string_view name() const override { return name_; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  HostKernel reference() const override;
  OpTraits traits() const override { return {.elementwise = true, .precision = precision_}; }

 private:
  std::string_view name_;  // text with static storage
  Vjp vjp_;
  Domain domain_;
  Precision precision_;
};

// Appends the op with this name to the operands' graph, and returns its result.
Node binary(std::string_view name, BinaryOp::Vjp vjp, Operand a, Operand b, Domain domain = Domain::numbers,
            FunctionOptions options = {}, Precision precision = Precision::follows);

// Returns the reference kernel of a function of two values; null if ops.def has no function with this name.
HostKernel binary_kernel(std::string_view name);

// Throws RuleError unless `count` inputs are given.
void require_inputs(std::span<const TensorType> inputs, std::size_t count);
// Throws RuleError unless the dtype is floating.
void require_floating(const TensorType& type);
// Throws RuleError unless the dtype is an integer. Bool is not an integer.
void require_integer(const TensorType& type);
// Throws RuleError, which suggests cast(), unless a and b have the same dtype.
void require_same_dtype(const TensorType& a, const TensorType& b);
// Returns the common dtype with the broadcast shape. Throws RuleError if the dtypes differ.
TensorType broadcast_types(const TensorType& a, const TensorType& b);

// Checks the operands of builders that compose other ops. Unless `holds` is true, throws UserError with the
// caller's line, the builder, the types of its operands (numbers are left out) and the rule.
void require_that(bool holds, std::string_view builder, std::span<const Operand> operands,
                  const std::string& rule);
void require_that(bool holds, std::string_view builder, std::initializer_list<Operand> operands,
                  const std::string& rule);
// Returns the axis, or the axes, of a value of this rank, counted from the front. Throws the error of
// require_that() for an axis that does not exist. axes_of() takes the axes of x, returns them in ascending
// order, and refuses one that is named twice.
std::int64_t axis_of(std::string_view builder, const Operand& x, std::int64_t axis, std::int64_t rank);
std::vector<std::int64_t> axes_of(std::string_view builder, const Operand& x, std::vector<std::int64_t> axes);
// Throws the error of require_that() unless x has a floating dtype.
void require_floating_operand(std::string_view builder, const Operand& x);

}  // namespace plexaura
