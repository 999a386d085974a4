#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"
#include "core/ops/functors.h"

namespace plexaura {

namespace {

using namespace portable;

// dst[i] = function(a[i * step_a], b[i * step_b]). Steps are mostly 0 or 1; for these the compiler makes
// loops with constant steps.
template <class T, class Result, class Function>
void run_of(const Function& function, const T* a, std::int64_t step_a, const T* b, std::int64_t step_b,
            Result* dst, std::int64_t length) {
  const auto loop = [&](auto of_a, auto of_b) {
    for (std::int64_t i = 0; i < length; ++i)
      dst[i] = Result(function(static_cast<Compute<T>>(a[i * of_a]), static_cast<Compute<T>>(b[i * of_b])));
  };
  constexpr std::integral_constant<std::int64_t, 0> none;
  constexpr std::integral_constant<std::int64_t, 1> one;
  if (step_a == 1 && step_b == 1)
    loop(one, one);
  else if (step_a == 1 && step_b == 0)
    loop(one, none);
  else if (step_a == 0 && step_b == 1)
    loop(none, one);
  else
    loop(step_a, step_b);
}

template <class T, class Result, class Function>
void broadcast_binary(const HostCall& call, const Function& function, std::int64_t cost) {
  const T* a = call.inputs[0].as<T>();
  const T* b = call.inputs[1].as<T>();
  Result* dst = call.outputs[0].as<Result>();
  const auto walk = broadcast_walk(call.outputs[0].shape(), call.inputs[0].shape(), call.inputs[1].shape());
  const auto [step_a, step_b] = walk.run_strides();
  parallel_pieces(walk.elements(), cost,
                  [&, step_a = step_a, step_b = step_b](std::int64_t begin, std::int64_t end) {
                    walk.runs(begin, end, [&](std::int64_t first, const auto& offsets, std::int64_t length) {
                      run_of(function, a + offsets[0], step_a, b + offsets[1], step_b, dst + first, length);
                    });
                  });
}

const double* numbers_of(const Op& op) { return op_cast<FunctionOp>(op).options().values.data(); }

template <template <class, class> class Functor, std::int64_t cost>
void compute_numbers(const Op& op, const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, bool>)
      broadcast_binary<T, T>(call, Functor<Compute<T>, StdMath>(numbers_of(op)), cost);
  });
}

template <template <class, class> class Functor, std::int64_t cost>
void compute_any(const Op& op, const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    broadcast_binary<T, bool>(call, Functor<Compute<T>, StdMath>(numbers_of(op)), cost);
  });
}

template <template <class, class> class Functor, std::int64_t cost>
void compute_floats(const Op& op, const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    broadcast_binary<T, T>(call, Functor<Compute<T>, StdMath>(numbers_of(op)), cost);
  });
}

template <template <class, class> class Functor, std::int64_t cost>
void compute_integers(const Op& op, const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      broadcast_binary<T, T>(call, Functor<Compute<T>, StdMath>(numbers_of(op)), cost);
  });
}

constexpr FunctionKernel binary_kernels[] = {
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost)
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) {#name, compute_##dtypes<functors::Functor, cost>},
#define PLEXAURA_INTEGERS(name, Functor, cost) PLEXAURA_BINARY(name, Functor, integers, cost)
#include "core/ops/ops.def"
};

}  // namespace

HostKernel binary_kernel(std::string_view name) { return kernel_of(name, binary_kernels); }

HostKernel BinaryOp::reference() const { return binary_kernel(name_); }

std::vector<TensorType> BinaryOp::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 2);
  if (domain_ == Domain::integers) require_integer(inputs[0]);
  if (inputs[0].dtype == DType::boolean && inputs[1].dtype == DType::boolean)
    throw RuleError("is defined for numbers, not for bool; use cast()");
  if (domain_ == Domain::floats) require_floating(inputs[0]);
  return {broadcast_types(inputs[0], inputs[1])};
}

std::vector<Node> BinaryOp::vjp(const VjpRequest& request) const {
  return vjp_({request.inputs[0], request.inputs[1], request.outputs[0]}, request.grad_outputs[0]);
}

Node binary(std::string_view name, BinaryOp::Vjp vjp, Operand a, Operand b, Domain domain,
            FunctionOptions options, Precision precision) {
  return apply(std::make_shared<BinaryOp>(name, std::move(vjp), domain, std::move(options), precision),
               {a, b});
}

}  // namespace plexaura
