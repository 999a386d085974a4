#include "backends/cpu/fast/elementwise/dropout_loops.h"

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

PLEXAURA_CLONES void drop(const DropoutRule& rule, const std::uint32_t* words, std::int64_t count,
                          const float* x, float* y, bool* mask) {
  const DropoutRule by = rule;
  if (y != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) y[i] = words[i] >= by.dropped_below ? x[i] * by.scale : 0.F;
  }
  if (mask != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) mask[i] = words[i] >= by.dropped_below;
  }
}

PLEXAURA_CLONES void drop_grad(const float* diff_y, const bool* mask, float scale, std::int64_t count,
                               float* diff_x) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) diff_x[i] = mask[i] ? diff_y[i] * scale : 0.F;
}

}  // namespace plexaura::fast
