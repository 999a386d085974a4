#include <cstring>

#include "backends/cpu/portable/loops.h"
#include "backends/cpu/portable/portable.h"
#include "backends/cpu/portable/types.h"
#include "core/ops/functors.h"

namespace plexaura {

namespace {

using namespace portable;

template <template <class, class> class Functor>
void unary(const HostCall& call, std::int64_t cost) {
  if (call.outputs[0].data == nullptr) return;
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const Functor<Compute<T>, StdMath> function;
    const T* src = call.inputs[0].as<T>();
    T* dst = call.outputs[0].as<T>();
    parallel_pieces(call.outputs[0].elements(), cost, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) dst[i] = T(function(static_cast<Compute<T>>(src[i])));
    });
  });
}

constexpr std::int64_t cheap = 1;
constexpr std::int64_t transcendental = 20;

}  // namespace

void portable_neg(const HostCall& call) { unary<functors::Neg>(call, cheap); }
void portable_abs(const HostCall& call) { unary<functors::Abs>(call, cheap); }
void portable_exp(const HostCall& call) { unary<functors::Exp>(call, transcendental); }
void portable_log(const HostCall& call) { unary<functors::Log>(call, transcendental); }
void portable_sqrt(const HostCall& call) { unary<functors::Sqrt>(call, transcendental); }
void portable_square(const HostCall& call) { unary<functors::Square>(call, cheap); }
void portable_sigmoid(const HostCall& call) { unary<functors::Sigmoid>(call, transcendental); }
void portable_tanh(const HostCall& call) { unary<functors::Tanh>(call, transcendental); }
void portable_relu(const HostCall& call) { unary<functors::Relu>(call, cheap); }
void portable_softplus(const HostCall& call) { unary<functors::Softplus>(call, transcendental); }

void portable_cast(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  dispatch(call.inputs[0].dtype(), [&]<class From>(std::type_identity<From>) {
    dispatch(call.outputs[0].dtype(), [&]<class To>(std::type_identity<To>) {
      const From* src = call.inputs[0].as<From>();
      To* dst = call.outputs[0].as<To>();
      parallel_pieces(call.outputs[0].elements(), cheap, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) dst[i] = convert<To>(src[i]);
      });
    });
  });
}

void portable_stop_gradient(const HostCall& call) { portable_reshape(call); }

}  // namespace plexaura
