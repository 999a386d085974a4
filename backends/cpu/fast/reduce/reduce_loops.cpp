#include "backends/cpu/fast/reduce/reduce_loops.h"

#include <algorithm>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

namespace {

constexpr std::int64_t chunk = 32;  // number of terms that are added up in float

PLEXAURA_CLONES void add_sixteen_columns(const float* x, std::int64_t rows, std::int64_t stride,
                                         double* sums) {
  for (std::int64_t begin = 0; begin < rows; begin += chunk) {
    const std::int64_t end = std::min(rows, begin + chunk);
    float partial[16] = {};
    for (std::int64_t row = begin; row < end; ++row) {
      const float* values = x + row * stride;
#pragma omp simd
      for (int lane = 0; lane < 16; ++lane) partial[lane] += values[lane];
    }
#pragma omp simd
    for (int lane = 0; lane < 16; ++lane) sums[lane] += static_cast<double>(partial[lane]);
  }
}

PLEXAURA_CLONES void add_some_columns(const float* x, std::int64_t rows, std::int64_t stride,
                                      std::int64_t columns, double* sums) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* values = x + row * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column)
      sums[column] += static_cast<double>(values[column]);
  }
}

}  // namespace

PLEXAURA_CLONES double sum_of(const float* x, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
  return sum;
}

void add_columns(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* sums) {
  if (columns == 16)
    add_sixteen_columns(x, rows, stride, sums);
  else
    add_some_columns(x, rows, stride, columns, sums);
}

}  // namespace plexaura::fast
