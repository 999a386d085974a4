#include "backends/cpu/fast/elementwise/elementwise_loops.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/elementwise/checked_loops.h"
#include "backends/cpu/fast/math/vector_math.h"
#include "core/ops/functors.h"

namespace plexaura {

namespace fast {

// The remainder by one division, for operands for which has_exact_quotient() is true. The quotient has at most 27 bits
// and the divisor 24, so that double has their product and the remainder exactly.
struct QuotientMath : VectorMath {
  static PLEXAURA_INLINE bool has_exact_quotient(float a, float b) {
    const float size = std::fabs(b);
    return std::fabs(a) < 0x1p27F * size && size < std::numeric_limits<float>::infinity();
  }

  static PLEXAURA_INLINE float fmod(float a, float b) {
    const double wide_a = a;
    const double wide_b = b;
    const auto quotient = static_cast<std::int32_t>(wide_a / wide_b);
    return std::copysign(static_cast<float>(wide_a - static_cast<double>(quotient) * wide_b), a);
  }
};

// Trigonometry for |x| < largest_angle. The multiple of pi / 2 that is nearest to x is subtracted in double, in two parts,
// the first of which has no rounding. The polynomials of the rest have the smallest possible maximum error. Errors, in
// units of the last place: sin and cos 2, tan 4.
struct AngleMath : VectorMath {
  static constexpr float largest_angle = 0x1p20F;

  static PLEXAURA_INLINE float sin(float x) { return Turned(x).sine(0); }
  static PLEXAURA_INLINE float cos(float x) { return Turned(x).sine(1); }
  static PLEXAURA_INLINE float tan(float x) {
    const Turned angle(x);
    return angle.sine(0) / angle.sine(1);
  }

 private:
  struct Turned {
    std::int32_t quarters;
    float sine_of_rest;
    float cosine_of_rest;

    PLEXAURA_INLINE explicit Turned(float x) {
      const double wide = x;
      constexpr double round = 0x1.8p52;  // adding it rounds to an integer
      const double turns = (wide * 0.63661977236758138 + round) - round;
      quarters = static_cast<std::int32_t>(turns);
      const auto rest = static_cast<float>((wide - turns * 0x1.921fb544p+0) - turns * 0x1.0b4611a626331p-34);
      const float z = rest * rest;
      float sum = 2.71804652e-6F * z - 1.98393042e-4F;
      sum = sum * z + 8.33332911e-3F;
      sum = sum * z - 1.66666672e-1F;
      sine_of_rest = std::copysign(rest + rest * z * sum, rest);
      sum = 2.44324128e-5F * z - 1.38873095e-3F;
      sum = sum * z + 4.16666456e-2F;
      cosine_of_rest = (1.F - 0.5F * z) + z * z * sum;
    }

    // Returns the sine of the angle after some more quarter turns.
    PLEXAURA_INLINE float sine(std::int32_t more) const {
      const std::int32_t all = quarters + more;
      const float size = (all & 1) == 0 ? sine_of_rest : cosine_of_rest;
      return (all & 2) == 0 ? size : -size;
    }
  };
};

}  // namespace fast

// With QuotientMath no divisor is 0.
template <>
struct functors::FloorDiv<float, fast::QuotientMath> {
  PLEXAURA_INLINE explicit FloorDiv(const double*) {}
  PLEXAURA_INLINE float operator()(float a, float b) const {
    return floor_of_quotient<float, fast::QuotientMath>(a, b, fast::QuotientMath::fmod(a, b));
  }
};

// Functors whose functions are large. The compiler would not inline their general form, and so not vectorise the loops.
#define PLEXAURA_LARGE_FUNCTOR(Name, function)                                                \
  template <>                                                                                 \
  struct functors::Name<float, fast::VectorMath> {                                            \
    PLEXAURA_INLINE explicit Name(const double*) {}                                           \
    PLEXAURA_INLINE float operator()(float x) const { return fast::VectorMath::function(x); } \
  };
PLEXAURA_LARGE_FUNCTOR(Erfc, erfc)
PLEXAURA_LARGE_FUNCTOR(Erfinv, erfinv)  // the general form iterates with erf and erfc
PLEXAURA_LARGE_FUNCTOR(Lgamma, lgamma)
#undef PLEXAURA_LARGE_FUNCTOR

namespace fast {

namespace {

// Functors that call fmod(). The standard library computes it bit by bit, without vectors.
template <template <class, class> class Functor>
constexpr bool takes_remainder = false;
template <>
constexpr bool takes_remainder<functors::FloorDiv> = true;
template <>
constexpr bool takes_remainder<functors::Mod> = true;

// Functors that compute a sine, cosine or tangent of their argument.
template <template <class, class> class Functor>
constexpr bool takes_angle = false;
template <>
constexpr bool takes_angle<functors::Sin> = true;
template <>
constexpr bool takes_angle<functors::Cos> = true;
template <>
constexpr bool takes_angle<functors::Tan> = true;

// Functors with an order n as option; some orders have a formula of their own.
template <template <class, class> class Functor>
constexpr bool has_order = false;
template <>
constexpr bool has_order<functors::Polygamma> = true;
template <>
constexpr bool has_order<functors::PowLog> = true;

template <template <class, class> class Functor>
PLEXAURA_INLINE void unary_loop(const float* x, float* y, std::int64_t count, const double* options) {
  if constexpr (takes_angle<Functor>) {
    angle_loop<Functor, AngleMath, VectorMath>(x, y, count);
  } else if (has_order<Functor> && options[0] == 0) {
    apply_large<WideMath::digamma>(x, y, count);
  } else if (has_order<Functor> && options[0] == 1) {
    apply_large<WideMath::trigamma>(x, y, count);
  } else {
    const Functor<float, VectorMath> f(options);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) y[i] = f(x[i]);
  }
}

// Functors that compute a power. Those with an order compute it if the order is 0.
template <template <class, class> class Functor>
constexpr bool takes_power = false;
template <>
constexpr bool takes_power<functors::Pow> = true;
template <>
constexpr bool takes_power<functors::PowLog> = true;

// Computes a^b, or a^b log(a) as PowLog does. The result may have the address of an operand.
template <int step_a, int step_b, bool with_logarithm>
PLEXAURA_INLINE void power_loop(const float* a, const float* b, float* y, std::int64_t count) {
  const float first_a = *a;
  const float first_b = *b;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float base = step_a == 0 ? first_a : a[i];
    const float power = VectorMath::pow(base, step_b == 0 ? first_b : b[i]);
    if constexpr (with_logarithm) {
      const float product = power * VectorMath::log(base);
      y[i] = power == 0.F ? power : product;
    } else {
      y[i] = power;
    }
  }
}

// A step is 0 for a single value, which is used for all elements, or 1 for an array.
template <template <class, class> class Functor, int step_a, int step_b>
PLEXAURA_INLINE void binary_loop(const float* a, const float* b, void* out, std::int64_t count,
                                 const double* options) {
  const Functor<float, VectorMath> f(options);
  auto* y = static_cast<decltype(f(*a, *b))*>(out);
  if constexpr (takes_remainder<Functor>) {
    remainder_loop<Functor, QuotientMath, VectorMath, step_a, step_b>(a, b, y, count);
  } else {
    const float first_a = *a;
    const float first_b = *b;
    if constexpr (takes_power<Functor>) {
      const bool is_power = !has_order<Functor> || options[0] == 0;
      if (is_power && step_b == 0 && simple_powers(a, first_b, y, count)) return;
      if (is_power) return power_loop<step_a, step_b, false>(a, b, y, count);
      if (options[0] == 1) return power_loop<step_a, step_b, true>(a, b, y, count);
    }
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i)
      y[i] = f(step_a == 0 ? first_a : a[i], step_b == 0 ? first_b : b[i]);
  }
}

// One loop for each op that has a functor.
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost)                                                                  \
  PLEXAURA_CLONES void loop_of_##name(const float* x, float* y, std::int64_t count, const double* options) { \
    unary_loop<functors::Functor>(x, y, count, options);                                                     \
  }
#define PLEXAURA_BINARY(name, Functor, dtypes, cost)                                                     \
  PLEXAURA_CLONES void loop_of_##name(const float* a, const float* b, void* out, std::int64_t count,     \
                                      const double* options) {                                           \
    binary_loop<functors::Functor, 1, 1>(a, b, out, count, options);                                     \
  }                                                                                                      \
  PLEXAURA_CLONES void scalar_a_of_##name(const float* a, const float* b, void* out, std::int64_t count, \
                                          const double* options) {                                       \
    binary_loop<functors::Functor, 0, 1>(a, b, out, count, options);                                     \
  }                                                                                                      \
  PLEXAURA_CLONES void scalar_b_of_##name(const float* a, const float* b, void* out, std::int64_t count, \
                                          const double* options) {                                       \
    binary_loop<functors::Functor, 1, 0>(a, b, out, count, options);                                     \
  }
#include "core/ops/ops.def"

// Tables of these loops, by op.
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost) UnaryLoops{#name, loop_of_##name, cost},
#define PLEXAURA_BINARY(name, Functor, dtypes, cost)
constexpr UnaryLoops unary_loops[] = {
#include "core/ops/ops.def"
};

#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost)
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) \
  BinaryLoops{#name, loop_of_##name, scalar_a_of_##name, scalar_b_of_##name, cost},
constexpr BinaryLoops binary_loops[] = {
#include "core/ops/ops.def"
};

template <class Table>
auto find(const Table& table, std::string_view op) {
  const auto* found = std::ranges::find(table, op, [](const auto& entry) { return entry.name; });
  return found == std::end(table) ? nullptr : found;
}

}  // namespace

const UnaryLoops* find_unary(std::string_view op) { return find(unary_loops, op); }
const BinaryLoops* find_binary(std::string_view op) { return find(binary_loops, op); }

PLEXAURA_CLONES void mask_loop(const float* y, const float* grad, float* result, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) result[i] = y[i] > 0.F ? grad[i] : 0.F;
}

PLEXAURA_CLONES void add_loop(const float* x, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] += x[i];
}

}  // namespace fast

}  // namespace plexaura
