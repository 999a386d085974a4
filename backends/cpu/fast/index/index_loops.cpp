#include "backends/cpu/fast/index/index_loops.h"

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// A negative index is a large unsigned number.
PLEXAURA_CLONES bool all_inside(const std::int64_t* indices, std::int64_t count, std::int64_t extent) {
  const auto limit = static_cast<std::uint64_t>(extent);
  std::int64_t outside = 0;
#pragma omp simd reduction(+ : outside)
  for (std::int64_t i = 0; i < count; ++i) outside += static_cast<std::uint64_t>(indices[i]) < limit ? 0 : 1;
  return outside == 0;
}

PLEXAURA_CLONES void add_row(const float* addends, float* sums, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sums[i] += addends[i];
}

PLEXAURA_CLONES void add_row(const double* addends, double* sums, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sums[i] += addends[i];
}

}  // namespace plexaura::fast
