#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"
#include "core/ops/functors.h"

namespace plexaura {

namespace {

using namespace portable;

// dst[i] = function(a[i * step_a], b[i * step_b]); steps are mostly 0 or 1, and are then known to the
// compiler.
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

const double* options_of(const HostCall& call) {
  return op_cast<FunctionOp>(call.op).options().values.data();
}

template <template <class, class> class Functor>
void of_numbers(const HostCall& call, std::int64_t cost) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, bool>)
      broadcast_binary<T, T>(call, Functor<Compute<T>, StdMath>(options_of(call)), cost);
  });
}

template <template <class, class> class Functor>
void of_any(const HostCall& call, std::int64_t cost) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    broadcast_binary<T, bool>(call, Functor<Compute<T>, StdMath>(options_of(call)), cost);
  });
}

template <template <class, class> class Functor>
void of_floats(const HostCall& call, std::int64_t cost) {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    broadcast_binary<T, T>(call, Functor<Compute<T>, StdMath>(options_of(call)), cost);
  });
}

}  // namespace

#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost)
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) \
  void portable_##name(const HostCall& call) { of_##dtypes<functors::Functor>(call, cost); }
#include "core/ops/ops.def"

void portable_where(const HostCall& call) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const auto walk =
      broadcast_walk(result.shape(), call.inputs[0].shape(), call.inputs[1].shape(), call.inputs[2].shape());
  const auto steps = walk.run_strides();
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const bool* condition = call.inputs[0].as<bool>();
    const T* a = call.inputs[1].as<T>();
    const T* b = call.inputs[2].as<T>();
    T* dst = result.as<T>();
    parallel_pieces(walk.elements(), 1, [&](std::int64_t begin, std::int64_t end) {
      walk.runs(begin, end, [&](std::int64_t first, const auto& offsets, std::int64_t length) {
        for (std::int64_t i = 0; i < length; ++i)
          dst[first + i] = condition[offsets[0] + i * steps[0]] ? a[offsets[1] + i * steps[1]]
                                                                : b[offsets[2] + i * steps[2]];
      });
    });
  });
}

}  // namespace plexaura
