#include "backends/cpu/fast/labels/label_loops.h"

#include <cmath>
#include <limits>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/math/vector_math.h"

namespace plexaura::fast {

namespace {

// Ignores NaNs: the exponentials turn them into NaNs of the result anyway.
PLEXAURA_CLONES float largest_of(const float* x, std::int64_t count) {
  float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

PLEXAURA_CLONES double sum_of_exponentials(const float* x, std::int64_t count, float largest) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(VectorMath::exp(x[i] - largest));
  return sum;
}

PLEXAURA_CLONES void write_exponentials(const float* x, std::int64_t count, float largest, float factor,
                                        float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = VectorMath::exp(x[i] - largest) * factor;
}

PLEXAURA_CLONES void scale_row(const float* x, std::int64_t count, float scale, float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * scale;
}

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

double loss_of_row(const float* logits, std::int64_t classes, std::int64_t label, float* probabilities) {
  const float largest = largest_of(logits, classes);
  const double total = sum_of_exponentials(logits, classes, largest);
  if (probabilities != nullptr)
    write_exponentials(logits, classes, largest, static_cast<float>(1 / total), probabilities);
  if (label < 0 || label >= classes) return std::numeric_limits<double>::quiet_NaN();
  return std::log(total) - (static_cast<double>(logits[label]) - static_cast<double>(largest));
}

void loss_grad_of_row(const float* probabilities, std::int64_t classes, std::int64_t label, float scale,
                      float* diff_logits) {
  scale_row(probabilities, classes, scale, diff_logits);
  diff_logits[label] = (probabilities[label] - 1.F) * scale;
}

std::int64_t classes_before(const float* logits, std::int64_t classes, std::int64_t label) {
  const float own = logits[label];
  return count_not_below(logits, label, own, true) +
         count_not_below(logits + label + 1, classes - label - 1, own, false);
}

}  // namespace plexaura::fast
