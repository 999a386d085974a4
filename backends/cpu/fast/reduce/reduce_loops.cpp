#include "backends/cpu/fast/reduce/reduce_loops.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/elementwise/cast_loops.h"

namespace plexaura::fast {

namespace {

constexpr std::int64_t lanes = 16;

template <class T>
using SumTotal = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

// Uses several running sums, so that additions do not wait for each other. Their order is fixed.
template <class T>
struct Sum {
  using Total = SumTotal<T>;
  static constexpr Total start = 0;

  static PLEXAURA_INLINE void run(const T* x, std::int64_t count, Total& total) {
    Total sums[lanes] = {};
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += static_cast<Total>(x[i + lane]);
    }
    for (std::int64_t lane = 0; i < count; ++i, ++lane) sums[lane] += static_cast<Total>(x[i]);
    for (std::int64_t half = lanes / 2; half > 0; half /= 2)
      for (std::int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    total += sums[0];
  }

  static PLEXAURA_INLINE void columns(const T* x, std::int64_t rows, std::int64_t stride,
                                      std::int64_t columns, Total* totals) {
    if constexpr (std::is_same_v<T, float>)
      if (columns == lanes && stride == lanes) return block_of_floats(x, rows, totals);
    constexpr std::int64_t width = 32;
    std::int64_t done = 0;
    for (; done + width <= columns; done += width) full_columns<width>(x + done, rows, stride, totals + done);
    for (; done + lanes <= columns; done += lanes) full_columns<lanes>(x + done, rows, stride, totals + done);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = done; column < columns; ++column)
        totals[column] += static_cast<Total>(x[row * stride + column]);
  }

  static PLEXAURA_INLINE void combine(Total from, Total& total) { total += from; }

 private:
  // Rows of 16 floats are mostly blocks of channels. Adds up 32 of them in float, which takes 0.6 of the time of doubles.
  static PLEXAURA_INLINE void block_of_floats(const float* x, std::int64_t rows, double* totals) {
    constexpr std::int64_t chunk = 32;
    for (std::int64_t begin = 0; begin < rows; begin += chunk) {
      const std::int64_t end = std::min(rows, begin + chunk);
      float sums[lanes] = {};
      for (std::int64_t row = begin; row < end; ++row) {
        const float* values = x + row * lanes;
#pragma omp simd
        for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += values[lane];
      }
#pragma omp simd
      for (std::int64_t lane = 0; lane < lanes; ++lane) totals[lane] += static_cast<double>(sums[lane]);
    }
  }

  template <std::int64_t width>
  static PLEXAURA_INLINE void full_columns(const T* x, std::int64_t rows, std::int64_t stride,
                                           Total* totals) {
    Total sums[width] = {};
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* values = x + row * stride;
#pragma omp simd
      for (std::int64_t lane = 0; lane < width; ++lane) sums[lane] += static_cast<Total>(values[lane]);
    }
#pragma omp simd
    for (std::int64_t lane = 0; lane < width; ++lane) totals[lane] += sums[lane];
  }
};

// The largest element, or the smallest one.
template <class T, bool largest>
struct Extreme {
  using Total = T;
  using Limits = std::numeric_limits<T>;
  static constexpr T highest = std::is_integral_v<T> ? Limits::max() : Limits::infinity();
  static constexpr T lowest = std::is_integral_v<T> ? Limits::lowest() : -Limits::infinity();
  static constexpr T start = largest ? lowest : highest;

  static PLEXAURA_INLINE T better(T next, T best) {
    const bool is_beyond = largest ? next > best : next < best;
    return (is_beyond | (next != next)) ? next : best;
  }

  static PLEXAURA_INLINE void run(const T* x, std::int64_t count, T& total) {
    T best[lanes];
    for (T& lane : best) lane = total;
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < lanes; ++lane) best[lane] = better(x[i + lane], best[lane]);
    }
    for (std::int64_t lane = 0; i < count; ++i, ++lane) best[lane] = better(x[i], best[lane]);
    T found = total;
    for (const T lane : best) found = better(lane, found);
    // The lanes do not know which of the zeros 0 and -0 comes first in x. The first one is the result.
    if (found == T(0) && total != T(0)) found = *std::find(x, x + count, T(0));
    total = found;
  }

  static PLEXAURA_INLINE void columns(const T* x, std::int64_t rows, std::int64_t stride,
                                      std::int64_t columns, T* totals) {
    T best[most_columns];
    std::copy_n(totals, columns, best);
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* values = x + row * stride;
#pragma omp simd
      for (std::int64_t column = 0; column < columns; ++column)
        best[column] = better(values[column], best[column]);
    }
    std::copy_n(best, columns, totals);
  }

  static PLEXAURA_INLINE void combine(T from, T& total) { total = better(from, total); }
};
template <class T>
using Max = Extreme<T, true>;
template <class T>
using Min = Extreme<T, false>;

template <class Rule>
void start_totals(std::byte* totals, std::int64_t count) {
  std::fill_n(reinterpret_cast<typename Rule::Total*>(totals), count, Rule::start);
}

template <class Rule>
void combine_totals(const std::byte* from, std::byte* totals, std::int64_t count) {
  using Total = typename Rule::Total;
  for (std::int64_t i = 0; i < count; ++i)
    Rule::combine(reinterpret_cast<const Total*>(from)[i], reinterpret_cast<Total*>(totals)[i]);
}

// Stores a total in an element. 16-bit floats are rounded from float.
template <class Total, class To>
void store_total(const std::byte* total, double count, std::byte* result, std::int64_t place) {
  const Total value = *reinterpret_cast<const Total*>(total);
  To& to = reinterpret_cast<To*>(result)[place];
  if constexpr (std::is_integral_v<To>)
    to = static_cast<To>(value);
  else if constexpr (sizeof(To) == 2)
    to = To(static_cast<float>(static_cast<double>(value) / count));
  else
    to = static_cast<To>(static_cast<double>(value) / count);
}

using std::int32_t;
using std::int64_t;

#define PLEXAURA_REDUCTIONS(T, loops) loops(sum, Sum, T) loops(max, Max, T) loops(min, Min, T)
#define PLEXAURA_ALL_REDUCTIONS(loops) \
  PLEXAURA_REDUCTIONS(float, loops)    \
  PLEXAURA_REDUCTIONS(double, loops) PLEXAURA_REDUCTIONS(int64_t, loops) PLEXAURA_REDUCTIONS(int32_t, loops)

#define PLEXAURA_LOOPS(rule, Rule, T)                                                                    \
  PLEXAURA_CLONES void rule##_run_of_##T(const std::byte* x, std::int64_t count, std::byte* total) {     \
    Rule<T>::run(reinterpret_cast<const T*>(x), count, *reinterpret_cast<Rule<T>::Total*>(total));       \
  }                                                                                                      \
  PLEXAURA_CLONES void rule##_columns_of_##T(const std::byte* x, std::int64_t rows, std::int64_t stride, \
                                             std::int64_t columns, std::byte* totals) {                  \
    Rule<T>::columns(reinterpret_cast<const T*>(x), rows, stride, columns,                               \
                     reinterpret_cast<Rule<T>::Total*>(totals));                                         \
  }
PLEXAURA_ALL_REDUCTIONS(PLEXAURA_LOOPS)
#undef PLEXAURA_LOOPS

struct NamedLoops {
  ReduceRule rule;
  DType dtype;
  ReduceLoops loops;
};

#define PLEXAURA_LOOPS(rule, Rule, T)                                                                  \
  NamedLoops{ReduceRule::rule,                                                                         \
             dtype_of<T>,                                                                              \
             {sizeof(Rule<T>::Total), start_totals<Rule<T>>, rule##_run_of_##T, rule##_columns_of_##T, \
              combine_totals<Rule<T>>, store_total<Rule<T>::Total, T>}},
constexpr NamedLoops all_loops[] = {PLEXAURA_ALL_REDUCTIONS(PLEXAURA_LOOPS)};
#undef PLEXAURA_LOOPS

constexpr const ReduceLoops* loops_of(ReduceRule rule, DType dtype) {
  for (const NamedLoops& named : all_loops)
    if (named.rule == rule && named.dtype == dtype) return &named.loops;
  return nullptr;
}

// Reduces 16-bit floats: converts pieces of them to float, which the caches keep.
template <class T, ReduceRule rule>
struct HalfLoops {
  static constexpr const ReduceLoops* of_floats = loops_of(rule, DType::float32);

  static void widen(const std::byte* x, std::int64_t first, float* to, std::int64_t count) {
    static const CastLoop cast = find_cast(dtype_of<T>, DType::float32);
    cast(x + first * static_cast<std::int64_t>(sizeof(T)), reinterpret_cast<std::byte*>(to), count);
  }

  static void run(const std::byte* x, std::int64_t count, std::byte* total) {
    constexpr std::int64_t piece = 512;
    float wide[piece];
    for (std::int64_t begin = 0; begin < count; begin += piece) {
      const std::int64_t size = std::min(piece, count - begin);
      widen(x, begin, wide, size);
      of_floats->run(reinterpret_cast<const std::byte*>(wide), size, total);
    }
  }

  static void columns(const std::byte* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                      std::byte* totals) {
    constexpr std::int64_t piece = 32;
    float wide[piece][most_columns];
    for (std::int64_t begin = 0; begin < rows; begin += piece) {
      const std::int64_t size = std::min(piece, rows - begin);
      for (std::int64_t row = 0; row < size; ++row) widen(x, (begin + row) * stride, wide[row], columns);
      of_floats->columns(reinterpret_cast<const std::byte*>(wide), size, most_columns, columns, totals);
    }
  }

  using Total = std::conditional_t<rule == ReduceRule::sum, double, float>;
  static constexpr ReduceLoops loops{of_floats->bytes_of_total, of_floats->start,     run, columns,
                                     of_floats->combine,        store_total<Total, T>};
};

template <class T>
const ReduceLoops* half_loops(ReduceRule rule) {
  if (rule == ReduceRule::sum) return &HalfLoops<T, ReduceRule::sum>::loops;
  return rule == ReduceRule::max ? &HalfLoops<T, ReduceRule::max>::loops
                                 : &HalfLoops<T, ReduceRule::min>::loops;
}

}  // namespace

const ReduceLoops* find_reduction(ReduceRule rule, DType dtype) {
  if (rule == ReduceRule::mean) rule = ReduceRule::sum;
  if (dtype == DType::bfloat16) return half_loops<bfloat16>(rule);
  if (dtype == DType::float16) return half_loops<float16>(rule);
  return loops_of(rule, dtype);
}

}  // namespace plexaura::fast
