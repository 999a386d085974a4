#include "backends/cpu/fast/elementwise/elementwise_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/elementwise/vector_math.h"
#include "core/ops/functors.h"

namespace plexaura {

namespace fast {

// The remainder by one division, for operands for which has_exact_quotient() is true. The quotient has at most 27 bits
// and the divisor 24, so that double has their product and the remainder exactly.
struct QuotientMath : VectorMath {
  static PLEXAURA_INLINE float fmod(float a, float b) {
    const double wide_a = a;
    const double wide_b = b;
    const auto quotient = static_cast<std::int32_t>(wide_a / wide_b);
    return std::copysign(static_cast<float>(wide_a - static_cast<double>(quotient) * wide_b), a);
  }
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

// The standard library has no inverse of erf, and the formula for other devices takes steps with erf and erfc.
template <>
struct functors::Erfinv<float, fast::VectorMath> {
  PLEXAURA_INLINE explicit Erfinv(const double*) {}
  PLEXAURA_INLINE float operator()(float x) const { return fast::VectorMath::erfinv(x); }
};

namespace fast {

namespace {

PLEXAURA_INLINE bool has_exact_quotient(float a, float b) {
  const float size = std::fabs(b);
  return std::fabs(a) < 0x1p27F * size && size < std::numeric_limits<float>::infinity();
}

// Functors that call fmod(). The standard library computes it bit by bit, without vectors.
template <template <class, class> class Functor>
constexpr bool takes_remainder = false;
template <>
constexpr bool takes_remainder<functors::FloorDiv> = true;
template <>
constexpr bool takes_remainder<functors::Mod> = true;

// Computes blocks of elements with QuotientMath. A block in which this is not exact is computed with VectorMath.
template <template <class, class> class Functor, int step_a, int step_b>
PLEXAURA_INLINE void remainder_loop(const float* a, const float* b, float* y, std::int64_t count,
                                    const double* options) {
  constexpr std::int64_t block = 64;
  float block_a[block];
  float block_b[block];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t size = std::min(block, count - begin);
    std::int32_t exact = 0;
#pragma omp simd reduction(+ : exact)
    for (std::int64_t i = 0; i < size; ++i) {
      block_a[i] = a[(begin + i) * step_a];
      block_b[i] = b[(begin + i) * step_b];
      exact += has_exact_quotient(block_a[i], block_b[i]) ? 1 : 0;
    }
    if (exact == size) {
      const Functor<float, QuotientMath> f(options);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) y[begin + i] = f(block_a[i], block_b[i]);
    } else {
      const Functor<float, VectorMath> f(options);
      for (std::int64_t i = 0; i < size; ++i) y[begin + i] = f(block_a[i], block_b[i]);
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
    remainder_loop<Functor, step_a, step_b>(a, b, y, count, options);
  } else {
    const float first_a = *a;
    const float first_b = *b;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i)
      y[i] = f(step_a == 0 ? first_a : a[i], step_b == 0 ? first_b : b[i]);
  }
}

// One loop for each op that has a functor.
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost)                                                                  \
  PLEXAURA_CLONES void loop_of_##name(const float* x, float* y, std::int64_t count, const double* options) { \
    const functors::Functor<float, VectorMath> f(options);                                                   \
    _Pragma("omp simd") for (std::int64_t i = 0; i < count; ++i) y[i] = f(x[i]);                             \
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

// Selects the bits of a or b. The compiler makes no vectors of a choice between floats by a bool.
template <int step_a, int step_b>
PLEXAURA_INLINE void choose(const bool* condition, const float* a, const float* b, float* y,
                            std::int64_t count) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(condition);
  const float first_a = *a;
  const float first_b = *b;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const auto if_true = std::bit_cast<std::uint32_t>(step_a == 0 ? first_a : a[i]);
    const auto if_false = std::bit_cast<std::uint32_t>(step_b == 0 ? first_b : b[i]);
    const std::uint32_t all_or_no_bits = 0U - static_cast<std::uint32_t>(bytes[i]);
    y[i] = std::bit_cast<float>((if_true & all_or_no_bits) | (if_false & ~all_or_no_bits));
  }
}

PLEXAURA_CLONES void where_arrays(const bool* condition, const float* a, const float* b, float* y,
                                  std::int64_t count) {
  choose<1, 1>(condition, a, b, y, count);
}

PLEXAURA_CLONES void where_or_scalar(const bool* condition, const float* a, const float* b, float* y,
                                     std::int64_t count) {
  choose<1, 0>(condition, a, b, y, count);
}

PLEXAURA_CLONES void scalar_or_where(const bool* condition, const float* a, const float* b, float* y,
                                     std::int64_t count) {
  choose<0, 1>(condition, a, b, y, count);
}

PLEXAURA_CLONES void scalar_or_scalar(const bool* condition, const float* a, const float* b, float* y,
                                      std::int64_t count) {
  choose<0, 0>(condition, a, b, y, count);
}

}  // namespace

const UnaryLoops* find_unary(std::string_view op) { return find(unary_loops, op); }
const BinaryLoops* find_binary(std::string_view op) { return find(binary_loops, op); }

void where_loop(const bool* condition, const float* a, const float* b, float* y, std::int64_t count,
                WhereSteps steps) {
  if (steps.condition == 0) {
    const float* chosen = *condition ? a : b;
    const std::int64_t step = *condition ? steps.a : steps.b;
    for (std::int64_t i = 0; i < count; ++i) y[i] = chosen[i * step];
  } else if (steps.a == 1 && steps.b == 1) {
    where_arrays(condition, a, b, y, count);
  } else if (steps.a == 1) {
    where_or_scalar(condition, a, b, y, count);
  } else if (steps.b == 1) {
    scalar_or_where(condition, a, b, y, count);
  } else {
    scalar_or_scalar(condition, a, b, y, count);
  }
}

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
