#include <cstring>

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"
#include "core/ops/functors.h"

namespace plexaura {

namespace {

using namespace portable;

template <template <class, class> class Functor>
void unary(const HostCall& call, std::int64_t cost) {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const Functor<Compute<T>, StdMath> function(op_cast<FunctionOp>(call.op).options().values.data());
    const T* src = call.inputs[0].as<T>();
    T* dst = call.outputs[0].as<T>();
    parallel_pieces(call.outputs[0].elements(), cost, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) dst[i] = T(function(static_cast<Compute<T>>(src[i])));
    });
  });
}

}  // namespace

#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost) \
  void portable_##name(const HostCall& call) { unary<functors::Functor>(call, cost); }
#define PLEXAURA_BINARY(name, Functor, dtypes, cost)
#include "core/ops/ops.def"

void portable_cast(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class From>(std::type_identity<From>) {
    dispatch(call.outputs[0].dtype(), [&]<class To>(std::type_identity<To>) {
      const From* src = call.inputs[0].as<From>();
      To* dst = call.outputs[0].as<To>();
      parallel_pieces(call.outputs[0].elements(), 1, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) dst[i] = convert<To>(src[i]);
      });
    });
  });
}

void portable_stop_gradient(const HostCall& call) { portable_reshape(call); }

}  // namespace plexaura
