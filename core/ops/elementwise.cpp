#include "core/ops/elementwise.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/composed.h"
#include "core/ops/functors.h"

namespace plexaura {

namespace {

using namespace portable;

template <template <class, class> class Functor, std::int64_t cost>
void compute_formula(const Op& op, const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const Functor<Compute<T>, StdMath> function(op_cast<FunctionOp>(op).options().values.data());
    const T* src = call.inputs[0].as<T>();
    T* dst = call.outputs[0].as<T>();
    parallel_pieces(call.outputs[0].elements(), cost, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) dst[i] = T(function(static_cast<Compute<T>>(src[i])));
    });
  });
}

constexpr FunctionKernel unary_kernels[] = {
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost) {#name, compute_formula<functors::Functor, cost>},
#define PLEXAURA_BINARY(name, Functor, dtypes, cost)
#include "core/ops/ops.def"
};

}  // namespace

HostKernel kernel_of(std::string_view name, std::span<const FunctionKernel> kernels) {
  const auto found = std::ranges::find(kernels, name, &FunctionKernel::name);
  return found == kernels.end() ? nullptr : found->kernel;
}

HostKernel UnaryOp::reference() const { return kernel_of(name_, unary_kernels); }

std::vector<TensorType> UnaryOp::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  require_floating(inputs[0]);
  return {inputs[0]};
}

std::vector<Node> UnaryOp::vjp(const VjpRequest& request) const {
  return {vjp_(request.inputs[0], request.outputs[0], request.grad_outputs[0])};
}

Node unary(std::string_view name, UnaryOp::Vjp vjp, Operand x, Precision precision, FunctionOptions options) {
  return apply(std::make_shared<UnaryOp>(name, std::move(vjp), std::move(options), precision), {x});
}

void require_that(bool holds, std::string_view builder, std::span<const Operand> operands,
                  const std::string& rule) {
  if (holds) return;
  std::vector<std::string> types;
  for (const Operand& operand : operands)
    if (!operand.is_number()) types.push_back(to_string(operand.node().type()));
  const Operand& first = operands.front();
  const Origin place = first.is_number() ? Origin::at(first.where()) : place_of_caller(first);
  throw UserError(fmt::format("{}: {}({}): {}", to_string(place), builder, fmt::join(types, ", "), rule));
}

void require_that(bool holds, std::string_view builder, std::initializer_list<Operand> operands,
                  const std::string& rule) {
  require_that(holds, builder, std::span(operands.begin(), operands.size()), rule);
}

std::int64_t axis_of(std::string_view builder, const Operand& x, std::int64_t axis, std::int64_t rank) {
  try {
    return normalise_axis(axis, rank);
  } catch (const std::invalid_argument& rule) {
    require_that(false, builder, {x}, rule.what());
    throw;
  }
}

std::vector<std::int64_t> axes_of(std::string_view builder, const Operand& x,
                                  std::vector<std::int64_t> axes) {
  for (std::int64_t& axis : axes) axis = axis_of(builder, x, axis, x.node().shape().rank());
  std::ranges::sort(axes);
  require_that(std::ranges::adjacent_find(axes) == axes.end(), builder, {x},
               "an axis is named twice; name each once");
  return axes;
}

void require_floating_operand(std::string_view builder, const Operand& x) {
  const DType dtype = x.node().dtype();
  require_that(is_floating(dtype), builder, {x},
               fmt::format("is defined for floating types, not for {}; use cast()", name_of(dtype)));
}

void require_inputs(std::span<const TensorType> inputs, std::size_t count) {
  if (inputs.size() != count)
    throw RuleError(fmt::format("takes {} inputs and was given {}", count, inputs.size()));
}

void require_floating(const TensorType& type) {
  if (!is_floating(type.dtype))
    throw RuleError(
        fmt::format("is defined for floating types, not for {}; use cast()", name_of(type.dtype)));
}

void require_integer(const TensorType& type) {
  if (is_floating(type.dtype) || type.dtype == DType::boolean)
    throw RuleError(fmt::format("is defined for integers, not for {}; use cast()", name_of(type.dtype)));
}

void require_same_dtype(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype)
    throw RuleError(
        fmt::format("both operands must have one dtype (here {} and {}); use cast() on one of them",
                    name_of(a.dtype), name_of(b.dtype)));
}

TensorType broadcast_types(const TensorType& a, const TensorType& b) {
  require_same_dtype(a, b);
  return {a.dtype, broadcast(a.shape, b.shape)};
}

}  // namespace plexaura
