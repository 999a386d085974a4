// The ops with a functor in core/ops/functors.h. One thread computes several elements of the result if the
// operands lie so that it can read them at once.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/several.h"
#include "backends/cuda/kernels/strides.h"
#include "core/ops/elementwise.h"
#include "core/ops/functors.h"

namespace plexaura::cuda {

// The number of elements of a group. Functions of many operations take fewer elements at once, since it is
// not the memory that limits them, and since their code would become too long.
template <class C, int cost, class... T>
inline constexpr int group_size = cost > 20 || (cost > 2 && sizeof(C) == sizeof(double)) ? 1
                                  : cost > 2 ? std::min(elements_at_once<T...>, 2)
                                             : elements_at_once<T...>;

template <class T, class Function, int width>
struct UnaryKernel {
  Global<const T> src;
  Global<T> dst;
  bool is_wide;
  Function function;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    each_group<width>(block, dst.count(), is_wide, [&]<int count>(std::int64_t first, Width<count>) {
      const auto x = src.template several<count>(first);
      Several<T, count> y;
      for (int k = 0; k < count; ++k) y[k] = narrow<T>(function(widen(x[k])));
      dst.set_several(first, y);
    });
  }
};

template <class T, class Result, class Function, int width>
struct BinaryKernel {
  Global<const T> a;
  Global<const T> b;
  Global<Result> dst;
  bool is_wide;
  Strides<2> strides;
  Function function;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    each_group<width>(block, dst.count(), is_wide, [&]<int count>(std::int64_t first, Width<count>) {
      const Several<T, count> x = strides.template group<0, count>(a, first);
      const Several<T, count> y = strides.template group<1, count>(b, first);
      Several<Result, count> z;
      for (int k = 0; k < count; ++k) z[k] = narrow<Result>(function(widen(x[k]), widen(y[k])));
      dst.set_several(first, z);
    });
  }
};

namespace {

const double* options_of(const Call& call) { return op_cast<FunctionOp>(call.op).options().values.data(); }

template <template <class, class> class Functor, int cost>
void unary(const Call& call) {
  const View& result = call.outputs[0];
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    using Function = Functor<Compute<T>, Math>;
    constexpr int width = group_size<Compute<T>, cost, T>;
    const bool is_wide = are_aligned(call.inputs[0], result);
    enqueue(call, blocks_for_groups(result.elements(), width, is_wide),
            UnaryKernel<T, Function, width>{call.inputs[0].in<T>(), result.out<T>(), is_wide,
                                            Function(options_of(call))});
  });
}

template <class T, class Result, template <class, class> class Functor, int cost>
void broadcast_binary(const Call& call) {
  using Function = Functor<Compute<T>, Math>;
  constexpr int width = group_size<Compute<T>, cost, T, Result>;
  const View& result = call.outputs[0];
  const auto strides = broadcast_strides(result.shape(), call.inputs[0].shape(), call.inputs[1].shape());
  const bool is_wide = are_aligned(call.inputs[0], call.inputs[1], result) && strides.has_groups_of(width);
  enqueue(call, blocks_for_groups(result.elements(), width, is_wide),
          BinaryKernel<T, Result, Function, width>{call.inputs[0].in<T>(), call.inputs[1].in<T>(),
                                                   result.out<Result>(), is_wide, strides,
                                                   Function(options_of(call))});
}

template <template <class, class> class Functor, int cost>
void of_numbers(const Call& call) {
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, bool>) broadcast_binary<T, T, Functor, cost>(call);
  });
}

template <template <class, class> class Functor, int cost>
void of_any(const Call& call) {
  dispatch(call.inputs[0].dtype(),
           [&]<class T>(std::type_identity<T>) { broadcast_binary<T, bool, Functor, cost>(call); });
}

template <template <class, class> class Functor, int cost>
void of_integers(const Call& call) {
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      broadcast_binary<T, T, Functor, cost>(call);
  });
}

template <template <class, class> class Functor, int cost>
void of_floats(const Call& call) {
  dispatch_floating(call.inputs[0].dtype(),
                    [&]<class T>(std::type_identity<T>) { broadcast_binary<T, T, Functor, cost>(call); });
}

}  // namespace

#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost) \
  void cuda_##name(const Call& call) { unary<functors::Functor, cost>(call); }
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) \
  void cuda_##name(const Call& call) { of_##dtypes<functors::Functor, cost>(call); }
#define PLEXAURA_INTEGERS(name, Functor, cost) PLEXAURA_BINARY(name, Functor, integers, cost)
#include "core/ops/ops.def"

}  // namespace plexaura::cuda
