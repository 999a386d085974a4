#include "backends/cpu/fast/elementwise/elementwise_loops.h"

#include <algorithm>
#include <iterator>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/elementwise/vector_math.h"
#include "core/ops/functors.h"

namespace plexaura::fast {

namespace {

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
    const functors::Functor<float, VectorMath> f(options);                                               \
    auto* y = static_cast<decltype(f(*a, *b))*>(out);                                                    \
    _Pragma("omp simd") for (std::int64_t i = 0; i < count; ++i) y[i] = f(a[i], b[i]);                   \
  }                                                                                                      \
  PLEXAURA_CLONES void scalar_a_of_##name(const float* a, const float* b, void* out, std::int64_t count, \
                                          const double* options) {                                       \
    const functors::Functor<float, VectorMath> f(options);                                               \
    auto* y = static_cast<decltype(f(*a, *b))*>(out);                                                    \
    const float scalar = *a;                                                                             \
    _Pragma("omp simd") for (std::int64_t i = 0; i < count; ++i) y[i] = f(scalar, b[i]);                 \
  }                                                                                                      \
  PLEXAURA_CLONES void scalar_b_of_##name(const float* a, const float* b, void* out, std::int64_t count, \
                                          const double* options) {                                       \
    const functors::Functor<float, VectorMath> f(options);                                               \
    auto* y = static_cast<decltype(f(*a, *b))*>(out);                                                    \
    const float scalar = *b;                                                                             \
    _Pragma("omp simd") for (std::int64_t i = 0; i < count; ++i) y[i] = f(a[i], scalar);                 \
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

PLEXAURA_CLONES void where_arrays(const bool* condition, const float* a, const float* b, float* y,
                                  std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = condition[i] ? a[i] : b[i];
}

PLEXAURA_CLONES void where_or_scalar(const bool* condition, const float* a, float b, float* y,
                                     std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = condition[i] ? a[i] : b;
}

}  // namespace

const UnaryLoops* find_unary(std::string_view op) { return find(unary_loops, op); }
const BinaryLoops* find_binary(std::string_view op) { return find(binary_loops, op); }

void where_loop(const bool* condition, const float* a, const float* b, float* y, std::int64_t count,
                WhereSteps steps) {
  if (steps.condition == 1 && steps.a == 1 && steps.b == 1) return where_arrays(condition, a, b, y, count);
  if (steps.condition == 1 && steps.a == 1) return where_or_scalar(condition, a, *b, y, count);
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = condition[i * steps.condition] ? a[i * steps.a] : b[i * steps.b];
}

PLEXAURA_CLONES void mask_loop(const float* y, const float* grad, float* result, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) result[i] = y[i] > 0.F ? grad[i] : 0.F;
}

PLEXAURA_CLONES void add_loop(const float* x, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] += x[i];
}

}  // namespace plexaura::fast
