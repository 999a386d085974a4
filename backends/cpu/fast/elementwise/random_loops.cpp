#include "backends/cpu/fast/elementwise/random_loops.h"

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/elementwise/draws.h"
#include "backends/cpu/fast/math/vector_math.h"

namespace plexaura::fast {

namespace {

constexpr std::int64_t pairs = draws_at_once / 2;
constexpr float to_fraction = 0x1p-32F;

// Returns log((word + 1) / 2^32). For values above one half it uses the distance to 1, which is small and
// exact.
PLEXAURA_INLINE float log_of(std::uint32_t word) {
  const float missing = static_cast<float>(~word) * to_fraction;
  const float low = VectorMath::log((static_cast<float>(word) + 1.F) * to_fraction);
  const float high = VectorMath::log1p(-missing);
  return word > 0x7fffffffU ? high : low;
}

struct SineAndCosine {
  float sine;
  float cosine;
};

// Returns sine and cosine of 2 pi word / 2^32. The angle is split into the nearest multiple of a quarter turn
// and a rest of at most pi / 4. The omitted terms of the series for the rest are below 4e-9.
PLEXAURA_INLINE SineAndCosine sine_and_cosine(std::uint32_t word) {
  const std::uint32_t quarter = (word + 0x20000000U) >> 30;
  const auto rest = static_cast<std::int32_t>(word - (quarter << 30));
  const float x = static_cast<float>(rest) * 1.46291808e-9F;  // 2 pi / 2^32
  const float z = x * x;
  const float sine =
      x + x * z * (-1.66666667e-1F + z * (8.33333333e-3F + z * (-1.98412698e-4F + z * 2.75573192e-6F)));
  const float cosine =
      1.F +
      z * (-0.5F + z * (4.16666667e-2F + z * (-1.38888889e-3F + z * (2.48015873e-5F + z * -2.75573192e-7F))));
  const bool swapped = (quarter & 1U) != 0;
  const float s = swapped ? cosine : sine;
  const float c = swapped ? sine : cosine;
  return {(quarter & 2U) != 0 ? -s : s, ((quarter + 1U) & 2U) != 0 ? -c : c};
}

}  // namespace

PLEXAURA_CLONES void uniform_loop(const std::uint32_t* words, double low, double width, double largest,
                                  float* values) {
#pragma omp simd
  for (std::int64_t i = 0; i < draws_at_once; ++i) {
    const double value = low + width * (static_cast<double>(words[i]) * 0x1p-32);
    values[i] = static_cast<float>(value < largest ? value : largest);
  }
}

PLEXAURA_CLONES void normal_loop(const std::uint32_t* words, float mean, float deviation, float* values) {
#pragma omp simd
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float radius = deviation * VectorMath::sqrt(-2.F * log_of(words[2 * i]));
    const SineAndCosine angle = sine_and_cosine(words[2 * i + 1]);
    values[2 * i] = mean + radius * angle.cosine;
    values[2 * i + 1] = mean + radius * angle.sine;
  }
}

}  // namespace plexaura::fast
