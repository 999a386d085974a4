#include "backends/cpu/fast/elementwise/typed_loops.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/elementwise/checked_loops.h"
#include "backends/cpu/fast/math/double_angles.h"
#include "backends/cpu/fast/math/double_powers.h"
#include "backends/cpu/fast/math/double_quotients.h"
#include "backends/cpu/fast/math/double_special.h"
#include "core/loops/std_math.h"
#include "core/ops/functors.h"

namespace plexaura::fast {

namespace {

template <class T>
using TypedMath = std::conditional_t<std::is_same_v<T, double>, DoubleMath, StdMath>;

template <class T, template <class, class> class Functor>
PLEXAURA_INLINE void unary_loop(const std::byte* const* operands, std::byte* out, std::int64_t count,
                                const double* options) {
  const Functor<T, TypedMath<T>> f(options);
  const auto* x = reinterpret_cast<const T*>(operands[0]);
  auto* y = reinterpret_cast<T*>(out);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = f(x[i]);
}

template <class T, template <class, class> class Functor>
PLEXAURA_INLINE void binary_loop(const std::byte* const* operands, std::byte* out, std::int64_t count,
                                 const double* options) {
  const Functor<T, TypedMath<T>> f(options);
  const auto* a = reinterpret_cast<const T*>(operands[0]);
  const auto* b = reinterpret_cast<const T*>(operands[1]);
  auto* y = reinterpret_cast<decltype(f(*a, *b))*>(out);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = f(a[i], b[i]);
}

template <class T, template <class, class> class Functor>
PLEXAURA_INLINE void angular_loop(const std::byte* const* operands, std::byte* out, std::int64_t count,
                                  const double*) {
  angle_loop<Functor, DoubleAngles, StdMath>(reinterpret_cast<const T*>(operands[0]),
                                             reinterpret_cast<T*>(out), count);
}

// Functions of DoubleSpecial. Of polygamma it has the orders 0 and 1.
template <class T, template <class, class> class Functor>
PLEXAURA_INLINE void special_loop(const std::byte* const* operands, std::byte* out, std::int64_t count,
                                  const double* options) {
  constexpr bool has_order = std::is_same_v<Functor<T, StdMath>, functors::Polygamma<T, StdMath>>;
  const auto* x = reinterpret_cast<const T*>(operands[0]);
  auto* y = reinterpret_cast<T*>(out);
  if constexpr (!has_order)
    apply_large<DoubleSpecial::erfinv>(x, y, count);
  else if (options[0] == 0)
    apply_large<DoubleSpecial::digamma>(x, y, count);
  else if (options[0] == 1)
    apply_large<DoubleSpecial::trigamma>(x, y, count);
  else
    unary_loop<T, Functor>(operands, out, count, options);
}

template <class T, template <class, class> class Functor>
PLEXAURA_INLINE void divided_loop(const std::byte* const* operands, std::byte* out, std::int64_t count,
                                  const double*) {
  remainder_loop<Functor, DoubleQuotients, DoubleMath, 1, 1>(reinterpret_cast<const T*>(operands[0]),
                                                             reinterpret_cast<const T*>(operands[1]),
                                                             reinterpret_cast<T*>(out), count);
}

constexpr std::int64_t power_block = 64;  // elements

// Computes the powers of at most power_block elements, times the logarithms of the bases, `order` times. Powers with one
// exponent may have a simple formula. The result may have the address of either operand.
PLEXAURA_INLINE void powers_of_block(const double* bases, const double* exponents, double* y,
                                     std::int64_t count, int order) {
  const double first = exponents[0];
  std::int64_t equal = 0;
#pragma omp simd reduction(+ : equal)
  for (std::int64_t i = 0; i < count; ++i) equal += exponents[i] == first ? 1 : 0;
  if (order == 0 && equal == count && simple_powers(bases, first, y, count)) return;
  double logarithms[power_block];
  if (order > 0) apply_large<DoubleMath::log>(bases, logarithms, count);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = DoublePowers::pow(bases[i], exponents[i]);
  for (int factor = 0; factor < order; ++factor)
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) y[i] = y[i] == 0. ? y[i] : y[i] * logarithms[i];
}

// The pieces of threads begin at multiples of 64 elements. So the blocks, and with them the formulas, do not depend on the
// number of threads.
template <class T, template <class, class> class Functor>
PLEXAURA_INLINE void power_loop(const std::byte* const* operands, std::byte* out, std::int64_t count,
                                const double* options) {
  constexpr bool has_order = std::is_same_v<Functor<T, StdMath>, functors::PowLog<T, StdMath>>;
  const int order = has_order ? static_cast<int>(options[0]) : 0;
  const auto* bases = reinterpret_cast<const T*>(operands[0]);
  const auto* exponents = reinterpret_cast<const T*>(operands[1]);
  auto* y = reinterpret_cast<T*>(out);
  for (std::int64_t begin = 0; begin < count; begin += power_block)
    powers_of_block(bases + begin, exponents + begin, y + begin, std::min(power_block, count - begin), order);
}

// The lists of loops: loop(op, functor, type, operands, form).
// clang-format off
#define PLEXAURA_UNARY_OF(T, loop) \
  loop(neg, Neg, T, 1, unary) \
  loop(abs, Abs, T, 1, unary) \
  loop(sqrt, Sqrt, T, 1, unary) \
  loop(square, Square, T, 1, unary) \
  loop(relu, Relu, T, 1, unary) \
  loop(leaky_relu, LeakyRelu, T, 1, unary) \
  loop(clip, Clip, T, 1, unary) \
  loop(hard_tanh, Clip, T, 1, unary) \
  loop(sign, Sign, T, 1, unary) \
  loop(ceil, Ceil, T, 1, unary) \
  loop(floor, Floor, T, 1, unary) \
  loop(round, Round, T, 1, unary) \
  loop(trunc, Trunc, T, 1, unary) \
  loop(cube, Cube, T, 1, unary) \
  loop(rsqrt, Rsqrt, T, 1, unary) \
  loop(softsign, Softsign, T, 1, unary) \
  loop(hard_sigmoid, HardSigmoid, T, 1, unary) \
  loop(hard_swish, HardSwish, T, 1, unary) \
  loop(exp, Exp, T, 1, unary) \
  loop(expm1, Expm1, T, 1, unary) \
  loop(log, Log, T, 1, unary) \
  loop(log1p, Log1p, T, 1, unary) \
  loop(tanh, Tanh, T, 1, unary) \
  loop(sigmoid, Sigmoid, T, 1, unary) \
  loop(log_sigmoid, LogSigmoid, T, 1, unary) \
  loop(softplus, Softplus, T, 1, unary) \
  loop(silu, Silu, T, 1, unary) \
  loop(gelu_tanh, GeluTanh, T, 1, unary) \
  loop(elu, Elu, T, 1, unary) \
  loop(selu, Selu, T, 1, unary) \
  loop(mish, Mish, T, 1, unary) \
  loop(exp2, Exp2, T, 1, unary) \
  loop(log2, Log2, T, 1, unary) \
  loop(log10, Log10, T, 1, unary) \
  loop(sin, Sin, T, 1, angular) \
  loop(cos, Cos, T, 1, angular) \
  loop(tan, Tan, T, 1, angular) \
  loop(asin, Asin, T, 1, unary) \
  loop(acos, Acos, T, 1, unary) \
  loop(atan, Atan, T, 1, unary) \
  loop(sinh, Sinh, T, 1, unary) \
  loop(cosh, Cosh, T, 1, unary) \
  loop(asinh, Asinh, T, 1, unary) \
  loop(atanh, Atanh, T, 1, unary) \
  loop(erfinv, Erfinv, T, 1, special) \
  loop(polygamma, Polygamma, T, 1, special)
#define PLEXAURA_FLOATING_OF(T, loop) \
  loop(weighted_sum, WeightedSum, T, 2, binary) \
  loop(mul_no_nan, MulNoNan, T, 2, binary) \
  loop(prelu, Prelu, T, 2, binary) \
  loop(pow, Pow, T, 2, power) \
  loop(pow_log, PowLog, T, 2, power) \
  loop(floor_div, FloorDiv, T, 2, divided) \
  loop(mod, Mod, T, 2, divided) \
  loop(atan2, Atan2, T, 2, binary) \
  loop(hypot, Hypot, T, 2, binary) \
  loop(sigmoid_cross_entropy, SigmoidCrossEntropy, T, 2, binary) \
  loop(huber, Huber, T, 2, binary)
#define PLEXAURA_NUMBERS_OF(T, loop) \
  loop(add, Add, T, 2, binary) \
  loop(sub, Sub, T, 2, binary) \
  loop(mul, Mul, T, 2, binary) \
  loop(div, Div, T, 2, binary) \
  loop(maximum, Maximum, T, 2, binary) \
  loop(minimum, Minimum, T, 2, binary) \
  loop(lt, Lt, T, 2, binary) \
  loop(le, Le, T, 2, binary) \
  loop(gt, Gt, T, 2, binary) \
  loop(ge, Ge, T, 2, binary)
#define PLEXAURA_ANY_OF(T, loop) \
  loop(eq, Eq, T, 2, binary) \
  loop(ne, Ne, T, 2, binary)
// clang-format on

#define PLEXAURA_ALL_TYPED(loop)     \
  PLEXAURA_UNARY_OF(double, loop)    \
  PLEXAURA_FLOATING_OF(double, loop) \
  PLEXAURA_NUMBERS_OF(double, loop)  \
  PLEXAURA_NUMBERS_OF(int64_t, loop) \
  PLEXAURA_NUMBERS_OF(int32_t, loop) \
  PLEXAURA_NUMBERS_OF(uint8_t, loop) \
  PLEXAURA_ANY_OF(double, loop)      \
  PLEXAURA_ANY_OF(int64_t, loop)     \
  PLEXAURA_ANY_OF(int32_t, loop) PLEXAURA_ANY_OF(uint8_t, loop) PLEXAURA_ANY_OF(bool, loop)

using std::int32_t;
using std::int64_t;
using std::uint8_t;

#define PLEXAURA_LOOP(name, Functor, T, operands, form)                                           \
  PLEXAURA_CLONES void name##_of_##T(const std::byte* const* x, std::byte* y, std::int64_t count, \
                                     const double* options) {                                     \
    form##_loop<T, functors::Functor>(x, y, count, options);                                      \
  }
PLEXAURA_ALL_TYPED(PLEXAURA_LOOP)
#undef PLEXAURA_LOOP

#define PLEXAURA_LOOP(name, Functor, T, operands, form) \
  TypedLoops{#name, dtype_of<T>, operands, name##_of_##T},
const TypedLoops typed_loops[] = {PLEXAURA_ALL_TYPED(PLEXAURA_LOOP)};
#undef PLEXAURA_LOOP

// The compiler makes no vectors of a choice by a bool.
template <class Bits>
PLEXAURA_INLINE void choose(const std::byte* const* operands, std::byte* out, std::int64_t count) {
  const auto* condition = reinterpret_cast<const unsigned char*>(operands[0]);
  const auto* a = reinterpret_cast<const Bits*>(operands[1]);
  const auto* b = reinterpret_cast<const Bits*>(operands[2]);
  auto* y = reinterpret_cast<Bits*>(out);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const auto all_or_no_bits = static_cast<Bits>(Bits{0} - static_cast<Bits>(condition[i]));
    y[i] = static_cast<Bits>((a[i] & all_or_no_bits) | (b[i] & static_cast<Bits>(~all_or_no_bits)));
  }
}

#define PLEXAURA_WHERE(Bits)                                                                        \
  PLEXAURA_CLONES void where_of_##Bits(const std::byte* const* x, std::byte* y, std::int64_t count, \
                                       const double*) {                                             \
    choose<std::Bits>(x, y, count);                                                                 \
  }
PLEXAURA_WHERE(uint8_t)
PLEXAURA_WHERE(uint16_t)
PLEXAURA_WHERE(uint32_t)
PLEXAURA_WHERE(uint64_t)
#undef PLEXAURA_WHERE

}  // namespace

const TypedLoops* find_typed(std::string_view op, DType dtype) {
  const auto* found = std::ranges::find_if(
      typed_loops, [&](const TypedLoops& loops) { return loops.name == op && loops.dtype == dtype; });
  return found == std::end(typed_loops) ? nullptr : found;
}

TypedLoop where_loop(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return where_of_uint8_t;
    case 2:
      return where_of_uint16_t;
    case 4:
      return where_of_uint32_t;
    default:
      return where_of_uint64_t;
  }
}

}  // namespace plexaura::fast
