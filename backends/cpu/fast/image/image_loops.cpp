#include "backends/cpu/fast/image/image_loops.h"

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

PLEXAURA_CLONES void normalise_plane(const std::uint8_t* x, std::int64_t count, float mean, float stddev,
                                     float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = (static_cast<float>(x[i]) / 255.F - mean) / stddev;
}

}  // namespace plexaura::fast
