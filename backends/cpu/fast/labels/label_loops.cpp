#include "backends/cpu/fast/labels/label_loops.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/math/math_of.h"

namespace plexaura::fast {

namespace {

// Returns the largest element. Ignores NaNs: the exponentials turn them into NaNs of the result anyway.
template <class T>
PLEXAURA_INLINE T largest_of(const T* x, std::int64_t count) {
  T largest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// The sum of e^(x - largest), from which the loss and the probabilities follow.
template <class T>
struct Exponentials {
  T largest;
  double total;
};

template <class T>
PLEXAURA_INLINE Exponentials<T> add_exponentials(const T* x, std::int64_t count) {
  const T largest = largest_of(x, count);
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(MathOf<T>::exp(x[i] - largest));
  return {largest, sum};
}

template <class T>
PLEXAURA_INLINE void write_exponentials(const T* x, std::int64_t count, const Exponentials<T>& of, T* y) {
  const auto factor = static_cast<T>(1 / of.total);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = MathOf<T>::exp(x[i] - of.largest) * factor;
}

template <class T>
PLEXAURA_INLINE void scale(const T* x, std::int64_t count, T factor, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * factor;
}

#define PLEXAURA_LABELS(T)                                                                          \
  PLEXAURA_CLONES Exponentials<T> exponentials_of(const T* x, std::int64_t count) {                 \
    return add_exponentials(x, count);                                                              \
  }                                                                                                 \
  PLEXAURA_CLONES void write_row(const T* x, std::int64_t count, const Exponentials<T>& of, T* y) { \
    write_exponentials(x, count, of, y);                                                            \
  }                                                                                                 \
  PLEXAURA_CLONES void scale_row(const T* x, std::int64_t count, T factor, T* y) {                  \
    scale(x, count, factor, y);                                                                     \
  }
PLEXAURA_LABELS(float)
PLEXAURA_LABELS(double)
#undef PLEXAURA_LABELS

PLEXAURA_CLONES std::int64_t count_not_below(const float* x, std::int64_t count, float own, bool ties) {
  std::int32_t found = 0;
#pragma omp simd reduction(+ : found)
  for (std::int64_t i = 0; i < count; ++i) {
    const bool above = !(x[i] <= own);
    const bool tied = ties & (x[i] == own);
    found += (above | tied) ? 1 : 0;
  }
  return found;
}

}  // namespace

template <class T>
double loss_of_row(const T* logits, std::int64_t classes, std::int64_t label, T* probabilities) {
  const Exponentials<T> of = exponentials_of(logits, classes);
  if (probabilities != nullptr) write_row(logits, classes, of, probabilities);
  if (label < 0 || label >= classes) return std::numeric_limits<double>::quiet_NaN();
  return std::log(of.total) - (static_cast<double>(logits[label]) - static_cast<double>(of.largest));
}

template <class T>
void loss_grad_of_row(const T* probabilities, std::int64_t classes, std::int64_t label, T factor,
                      T* diff_logits) {
  scale_row(probabilities, classes, factor, diff_logits);
  diff_logits[label] = (probabilities[label] - T(1)) * factor;
}

template double loss_of_row(const float*, std::int64_t, std::int64_t, float*);
template double loss_of_row(const double*, std::int64_t, std::int64_t, double*);
template void loss_grad_of_row(const float*, std::int64_t, std::int64_t, float, float*);
template void loss_grad_of_row(const double*, std::int64_t, std::int64_t, double, double*);

std::int64_t classes_before(const float* logits, std::int64_t classes, std::int64_t label) {
  const float own = logits[label];
  return count_not_below(logits, label, own, true) +
         count_not_below(logits + label + 1, classes - label - 1, own, false);
}

}  // namespace plexaura::fast
