#include "backends/cpu/fast/reduce/argmax_loops.h"

#include <algorithm>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

namespace {

template <class T>
PLEXAURA_INLINE void find_rows(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                               std::int64_t* places) {
  T largest[most_argmax_columns];
  std::copy_n(x, columns, largest);
  std::fill_n(places, columns, 0);
  for (std::int64_t row = 1; row < rows; ++row) {
    const T* values = x + row * stride;
#pragma omp simd
    for (std::int64_t column = 0; column < columns; ++column) {
      const T value = values[column];
      const T before = largest[column];
      const bool is_larger = (value > before) | ((value != value) & (before == before));
      largest[column] = is_larger ? value : before;
      places[column] = is_larger ? row : places[column];
    }
  }
}

#define PLEXAURA_ARGMAX(T)                                                               \
  PLEXAURA_CLONES void argmax_of_##T(const T* x, std::int64_t rows, std::int64_t stride, \
                                     std::int64_t columns, std::int64_t* places) {       \
    find_rows(x, rows, stride, columns, places);                                         \
  }
PLEXAURA_ARGMAX(float)
PLEXAURA_ARGMAX(double)
#undef PLEXAURA_ARGMAX

}  // namespace

template <>
ArgMaxLoop<float> argmax_loop() {
  return argmax_of_float;
}

template <>
ArgMaxLoop<double> argmax_loop() {
  return argmax_of_double;
}

}  // namespace plexaura::fast
