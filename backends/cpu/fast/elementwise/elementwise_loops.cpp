#include "backends/cpu/fast/elementwise/elementwise_loops.h"

#include <algorithm>
#include <array>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/elementwise/vector_math.h"
#include "core/ops/functors.h"

namespace plexaura::fast {

namespace {

#define PLEXAURA_UNARY_LOOP(loop, Functor)                                       \
  PLEXAURA_CLONES void loop(const float* x, float* y, std::int64_t count) {      \
    const functors::Functor<float, VectorMath> f;                                \
    _Pragma("omp simd") for (std::int64_t i = 0; i < count; ++i) y[i] = f(x[i]); \
  }

PLEXAURA_UNARY_LOOP(neg_loop, Neg)
PLEXAURA_UNARY_LOOP(abs_loop, Abs)
PLEXAURA_UNARY_LOOP(exp_loop, Exp)
PLEXAURA_UNARY_LOOP(log_loop, Log)
PLEXAURA_UNARY_LOOP(sqrt_loop, Sqrt)
PLEXAURA_UNARY_LOOP(square_loop, Square)
PLEXAURA_UNARY_LOOP(sigmoid_loop, Sigmoid)
PLEXAURA_UNARY_LOOP(tanh_loop, Tanh)
PLEXAURA_UNARY_LOOP(relu_loop, Relu)
#undef PLEXAURA_UNARY_LOOP

// NOLINTBEGIN(bugprone-macro-parentheses): Result is a type
#define PLEXAURA_BINARY_LOOP(loop, Functor, Result)                                                     \
  PLEXAURA_CLONES void loop(const float* a, const float* b, void* out, std::int64_t count) {            \
    const functors::Functor<float, VectorMath> f;                                                       \
    auto* y = static_cast<Result*>(out);                                                                \
    _Pragma("omp simd") for (std::int64_t i = 0; i < count; ++i) y[i] = f(a[i], b[i]);                  \
  }                                                                                                     \
  PLEXAURA_CLONES void loop##_scalar_a(const float* a, const float* b, void* out, std::int64_t count) { \
    const functors::Functor<float, VectorMath> f;                                                       \
    auto* y = static_cast<Result*>(out);                                                                \
    const float scalar = *a;                                                                            \
    _Pragma("omp simd") for (std::int64_t i = 0; i < count; ++i) y[i] = f(scalar, b[i]);                \
  }                                                                                                     \
  PLEXAURA_CLONES void loop##_scalar_b(const float* a, const float* b, void* out, std::int64_t count) { \
    const functors::Functor<float, VectorMath> f;                                                       \
    auto* y = static_cast<Result*>(out);                                                                \
    const float scalar = *b;                                                                            \
    _Pragma("omp simd") for (std::int64_t i = 0; i < count; ++i) y[i] = f(a[i], scalar);                \
  }
// NOLINTEND(bugprone-macro-parentheses)

PLEXAURA_BINARY_LOOP(sum_loop, Add, float)
PLEXAURA_BINARY_LOOP(sub_loop, Sub, float)
PLEXAURA_BINARY_LOOP(mul_loop, Mul, float)
PLEXAURA_BINARY_LOOP(div_loop, Div, float)
PLEXAURA_BINARY_LOOP(relu_grad_loop, ReluGrad, float)
PLEXAURA_BINARY_LOOP(eq_loop, Eq, bool)
PLEXAURA_BINARY_LOOP(ne_loop, Ne, bool)
PLEXAURA_BINARY_LOOP(lt_loop, Lt, bool)
PLEXAURA_BINARY_LOOP(le_loop, Le, bool)
PLEXAURA_BINARY_LOOP(gt_loop, Gt, bool)
PLEXAURA_BINARY_LOOP(ge_loop, Ge, bool)
#undef PLEXAURA_BINARY_LOOP

constexpr std::array unary_loops{
    UnaryLoops{"neg", neg_loop, false, 0.1},         UnaryLoops{"abs", abs_loop, true, 0.1},
    UnaryLoops{"exp", exp_loop, false, 0.4},         UnaryLoops{"log", log_loop, false, 0.5},
    UnaryLoops{"sqrt", sqrt_loop, true, 0.2},        UnaryLoops{"square", square_loop, true, 0.1},
    UnaryLoops{"sigmoid", sigmoid_loop, false, 0.5}, UnaryLoops{"tanh", tanh_loop, true, 0.6},
    UnaryLoops{"relu", relu_loop, true, 0.1}};

#define PLEXAURA_BINARY(name, loop, is_comparison, zeros_to_zero) \
  BinaryLoops { name, loop, loop##_scalar_a, loop##_scalar_b, is_comparison, zeros_to_zero }
constexpr std::array binary_loops{PLEXAURA_BINARY("add", sum_loop, false, true),
                                  PLEXAURA_BINARY("sub", sub_loop, false, true),
                                  PLEXAURA_BINARY("mul", mul_loop, false, true),
                                  PLEXAURA_BINARY("div", div_loop, false, false),
                                  PLEXAURA_BINARY("relu_grad", relu_grad_loop, false, true),
                                  PLEXAURA_BINARY("eq", eq_loop, true, false),
                                  PLEXAURA_BINARY("ne", ne_loop, true, true),
                                  PLEXAURA_BINARY("lt", lt_loop, true, true),
                                  PLEXAURA_BINARY("le", le_loop, true, false),
                                  PLEXAURA_BINARY("gt", gt_loop, true, true),
                                  PLEXAURA_BINARY("ge", ge_loop, true, false)};
#undef PLEXAURA_BINARY

template <class Table>
auto find(const Table& table, std::string_view op) {
  const auto found = std::ranges::find(table, op, [](const auto& entry) { return entry.name; });
  return found == table.end() ? nullptr : &*found;
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

PLEXAURA_CLONES void add_loop(const float* x, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] += x[i];
}

}  // namespace plexaura::fast
