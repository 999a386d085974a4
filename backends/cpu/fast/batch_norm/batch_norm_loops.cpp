#include "backends/cpu/fast/batch_norm/batch_norm_loops.h"

#include <algorithm>

#include "backends/cpu/fast/lanes.h"

namespace plexaura::fast {

namespace {

// The number of terms that are added up in float before the result is added to a sum in double.
constexpr std::int64_t chunk = 64;

template <int lanes>
PLEXAURA_INLINE void add_to(double* sums, const float* values) {
#pragma omp simd
  for (int lane = 0; lane < lanes; ++lane) sums[lane] += static_cast<double>(values[lane]);
}

template <int lanes>
PLEXAURA_INLINE void mean_of_rows(const float* src, Rows rows, float* mean) {
  const float share = 1.F / static_cast<float>(rows.count);
  float sums[lanes] = {};
  for (std::int64_t row = 0; row < rows.count; ++row) {
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) sums[lane] += src[row * rows.stride + lane] * share;
  }
  for (int lane = 0; lane < lanes; ++lane) mean[lane] = sums[lane];
}

// Squares of float are precise only if the values lie near zero. So each chunk of terms is shifted by the
// mean of all rows before it, and the first chunk by its own mean.
template <int lanes>
PLEXAURA_INLINE void moments_body(const float* src, Rows rows, double* mean, double* spread) {
  float shift[lanes];
  mean_of_rows<lanes>(src, {std::min(rows.count, chunk), rows.stride}, shift);
  double means[lanes] = {};
  double spreads[lanes] = {};
  for (std::int64_t begin = 0; begin < rows.count; begin += chunk) {
    const std::int64_t end = std::min(rows.count, begin + chunk);
    float sums[lanes] = {};
    float squares[lanes] = {};
    for (std::int64_t row = begin; row < end; ++row) {
      const float* x = src + row * rows.stride;
#pragma omp simd
      for (int lane = 0; lane < lanes; ++lane) {
        const float centred = x[lane] - shift[lane];
        sums[lane] += centred;
        squares[lane] += centred * centred;
      }
    }
    const double share = 1.0 / static_cast<double>(end - begin);
    const double part = static_cast<double>(end - begin) / static_cast<double>(end);  // share of the rows
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) {
      const double offset = static_cast<double>(sums[lane]) * share;
      const double distance = static_cast<double>(shift[lane]) + offset - means[lane];
      spreads[lane] += static_cast<double>(squares[lane]) - offset * static_cast<double>(sums[lane]) +
                       distance * distance * part * static_cast<double>(begin);
      means[lane] += distance * part;
      shift[lane] = static_cast<float>(means[lane]);
    }
  }
  for (int lane = 0; lane < lanes; ++lane) {
    mean[lane] = means[lane];
    spread[lane] = spreads[lane];
  }
}

template <int lanes, bool adds, bool relu, bool streams>
PLEXAURA_INLINE void normalise_body(const NormaliseArrays& arrays, Rows rows, const NormaliseBy& by) {
  const float* src = arrays.src;
  const float* addend = arrays.addend;
  float* dst = arrays.dst;
  const NormaliseBy factors = by;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const std::int64_t at = row * rows.stride;
    float y[lanes];
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) {
      float value = (src[at + lane] - factors.mean[lane]) * factors.factor[lane] + factors.shift[lane];
      if constexpr (adds) value += addend[at + lane];
      if constexpr (relu) value = value < 0.F ? 0.F : value;
      y[lane] = value;
    }
    if constexpr (streams) {
      stream<lanes>(dst + at, y);
    } else {
      for (int lane = 0; lane < lanes; ++lane) dst[at + lane] = y[lane];
    }
  }
}

template <int lanes, bool adds, bool relu>
PLEXAURA_INLINE void normalise_to(const NormaliseArrays& arrays, Rows rows, const NormaliseBy& by) {
  if (arrays.stream)
    normalise_body<lanes, adds, relu, true>(arrays, rows, by);
  else
    normalise_body<lanes, adds, relu, false>(arrays, rows, by);
}

template <int lanes>
PLEXAURA_INLINE void normalise_any(const NormaliseArrays& arrays, Rows rows, const NormaliseBy& by) {
  const bool adds = arrays.addend != nullptr;
  if (adds && arrays.relu)
    normalise_to<lanes, true, true>(arrays, rows, by);
  else if (adds)
    normalise_to<lanes, true, false>(arrays, rows, by);
  else if (arrays.relu)
    normalise_to<lanes, false, true>(arrays, rows, by);
  else
    normalise_to<lanes, false, false>(arrays, rows, by);
}

template <int lanes, bool masks, bool writes>
PLEXAURA_INLINE void gradients_body(const BackwardArrays& arrays, Rows rows, const float* means, double* sum,
                                    double* along) {
  const float* src = arrays.src;
  const float* diff_dst = arrays.diff_dst;
  const float* mask = arrays.mask;
  float* masked = arrays.masked;
  float mean[lanes];
  for (int lane = 0; lane < lanes; ++lane) mean[lane] = means[lane];
  for (std::int64_t begin = 0; begin < rows.count; begin += chunk) {
    const std::int64_t end = std::min(rows.count, begin + chunk);
    float sums[lanes] = {};
    float products[lanes] = {};
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * rows.stride;
#pragma omp simd
      for (int lane = 0; lane < lanes; ++lane) {
        float grad = diff_dst[at + lane];
        if constexpr (masks) grad = mask[at + lane] > 0.F ? grad : 0.F;
        if constexpr (writes) masked[at + lane] = grad;
        sums[lane] += grad;
        products[lane] += grad * (src[at + lane] - mean[lane]);
      }
    }
    add_to<lanes>(sum, sums);
    add_to<lanes>(along, products);
  }
}

template <int lanes>
PLEXAURA_INLINE void gradients_any(const BackwardArrays& arrays, Rows rows, const float* mean, double* sum,
                                   double* along) {
  if (arrays.mask == nullptr)
    gradients_body<lanes, false, false>(arrays, rows, mean, sum, along);
  else if (arrays.masked == nullptr)
    gradients_body<lanes, true, false>(arrays, rows, mean, sum, along);
  else
    gradients_body<lanes, true, true>(arrays, rows, mean, sum, along);
}

template <int lanes, bool masks, bool adds>
PLEXAURA_INLINE void backward_body(const BackwardArrays& arrays, Rows rows, const BackwardBy& by) {
  const float* src = arrays.src;
  const float* diff_dst = arrays.diff_dst;
  const float* mask = arrays.mask;
  const float* addend = arrays.addend;
  float* diff_src = arrays.diff_src;
  const BackwardBy factors = by;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const std::int64_t at = row * rows.stride;
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) {
      float grad = diff_dst[at + lane];
      if constexpr (masks) grad = mask[at + lane] > 0.F ? grad : 0.F;
      const float centred = src[at + lane] - factors.mean[lane];
      float value = factors.factor[lane] * (grad - factors.mean_grad[lane] - centred * factors.tilt[lane]);
      if constexpr (adds) value += addend[at + lane];
      diff_src[at + lane] = value;
    }
  }
}

template <int lanes, bool masks>
PLEXAURA_INLINE void backward_to(const BackwardArrays& arrays, Rows rows, const BackwardBy& by) {
  if (arrays.addend != nullptr)
    backward_body<lanes, masks, true>(arrays, rows, by);
  else
    backward_body<lanes, masks, false>(arrays, rows, by);
}

template <int lanes>
PLEXAURA_INLINE void backward_any(const BackwardArrays& arrays, Rows rows, const BackwardBy& by) {
  if (arrays.mask == nullptr)
    backward_to<lanes, false>(arrays, rows, by);
  else
    backward_to<lanes, true>(arrays, rows, by);
}

#define PLEXAURA_FOR_LANES(lanes)                                                                           \
  PLEXAURA_CLONES void moments_##lanes(const float* src, Rows rows, double* mean, double* spread) {         \
    moments_body<lanes>(src, rows, mean, spread);                                                           \
  }                                                                                                         \
  PLEXAURA_CLONES void normalise_##lanes(const NormaliseArrays& arrays, Rows rows, const NormaliseBy& by) { \
    normalise_any<lanes>(arrays, rows, by);                                                                 \
  }                                                                                                         \
  PLEXAURA_CLONES void gradients_##lanes(const BackwardArrays& arrays, Rows rows, const float* mean,        \
                                         double* sum, double* along) {                                      \
    gradients_any<lanes>(arrays, rows, mean, sum, along);                                                   \
  }                                                                                                         \
  PLEXAURA_CLONES void backward_##lanes(const BackwardArrays& arrays, Rows rows, const BackwardBy& by) {    \
    backward_any<lanes>(arrays, rows, by);                                                                  \
  }
PLEXAURA_FOR_LANES(8)
PLEXAURA_FOR_LANES(16)
#undef PLEXAURA_FOR_LANES

}  // namespace

void find_moments(std::int64_t lanes, const float* src, Rows rows, double* mean, double* spread) {
  lanes == 16 ? moments_16(src, rows, mean, spread) : moments_8(src, rows, mean, spread);
}

void normalise(std::int64_t lanes, const NormaliseArrays& arrays, Rows rows, const NormaliseBy& by) {
  lanes == 16 ? normalise_16(arrays, rows, by) : normalise_8(arrays, rows, by);
}

void sum_gradients(std::int64_t lanes, const BackwardArrays& arrays, Rows rows, const float* mean,
                   double* sum, double* along) {
  lanes == 16 ? gradients_16(arrays, rows, mean, sum, along) : gradients_8(arrays, rows, mean, sum, along);
}

void backward(std::int64_t lanes, const BackwardArrays& arrays, Rows rows, const BackwardBy& by) {
  lanes == 16 ? backward_16(arrays, rows, by) : backward_8(arrays, rows, by);
}

}  // namespace plexaura::fast
