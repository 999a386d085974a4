// The ops with a functor in core/ops/functors.h. One thread computes one element of the result.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"
#include "core/ops/elementwise.h"
#include "core/ops/functors.h"

namespace plexaura::cuda {

template <class T, class Function>
struct UnaryKernel {
  Global<const T> src;
  Global<T> dst;
  Function function;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t i) { dst[i] = narrow<T>(function(widen(src[i]))); });
  }
};

template <class T, class Result, class Function>
struct BinaryKernel {
  Global<const T> a;
  Global<const T> b;
  Global<Result> dst;
  Strides<2> strides;
  Function function;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t i) {
      dst[i] = narrow<Result>(
          function(widen(a[strides.template place<0>(i)]), widen(b[strides.template place<1>(i)])));
    });
  }
};

namespace {

const double* options_of(const Call& call) { return op_cast<FunctionOp>(call.op).options().values.data(); }

template <template <class, class> class Functor>
void unary(const Call& call) {
  const View& result = call.outputs[0];
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    using Function = Functor<Compute<T>, Math>;
    enqueue(call, blocks_for(result.elements()),
            UnaryKernel<T, Function>{call.inputs[0].in<T>(), result.out<T>(), Function(options_of(call))});
  });
}

template <class T, class Result, class Function>
void broadcast_binary(const Call& call) {
  const View& result = call.outputs[0];
  enqueue(call, blocks_for(result.elements()),
          BinaryKernel<T, Result, Function>{
              call.inputs[0].in<T>(), call.inputs[1].in<T>(), result.out<Result>(),
              broadcast_strides(result.shape(), call.inputs[0].shape(), call.inputs[1].shape()),
              Function(options_of(call))});
}

template <template <class, class> class Functor>
void of_numbers(const Call& call) {
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, bool>) broadcast_binary<T, T, Functor<Compute<T>, Math>>(call);
  });
}

template <template <class, class> class Functor>
void of_any(const Call& call) {
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    broadcast_binary<T, bool, Functor<Compute<T>, Math>>(call);
  });
}

template <template <class, class> class Functor>
void of_integers(const Call& call) {
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      broadcast_binary<T, T, Functor<Compute<T>, Math>>(call);
  });
}

template <template <class, class> class Functor>
void of_floats(const Call& call) {
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    broadcast_binary<T, T, Functor<Compute<T>, Math>>(call);
  });
}

}  // namespace

#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost) \
  void cuda_##name(const Call& call) { unary<functors::Functor>(call); }
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) \
  void cuda_##name(const Call& call) { of_##dtypes<functors::Functor>(call); }
#define PLEXAURA_INTEGERS(name, Functor, cost) PLEXAURA_BINARY(name, Functor, integers, cost)
#include "core/ops/ops.def"

}  // namespace plexaura::cuda
