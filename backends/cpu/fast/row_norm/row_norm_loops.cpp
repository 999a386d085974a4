#include "backends/cpu/fast/row_norm/row_norm_loops.h"

#include <cmath>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

namespace {

PLEXAURA_INLINE float mean_of(const float* x, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
  return static_cast<float>(sum * (1 / static_cast<double>(count)));
}

// Returns the mean of (x - mean)^2, and writes x - mean unless `centred` is null.
PLEXAURA_INLINE float mean_square(const float* x, std::int64_t count, float mean, float* centred) {
  double sum = 0;
  if (centred == nullptr) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = x[i] - mean;
      sum += static_cast<double>(value * value);
    }
  } else {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = x[i] - mean;
      centred[i] = value;
      sum += static_cast<double>(value * value);
    }
  }
  return static_cast<float>(sum * (1 / static_cast<double>(count)));
}

// Writes (x - mean) * inverse to `normal` unless it is null, and applies scale and shift, which are one number each or,
// with `each`, one for each element.
template <bool each>
PLEXAURA_INLINE void apply(const float* x, std::int64_t count, float mean, float inverse, const float* scale,
                           const float* shift, float* normal, float* result) {
  constexpr std::int64_t step = each ? 1 : 0;
  if (normal != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) normal[i] = (x[i] - mean) * inverse;
  }
  if (shift != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i)
      result[i] = (x[i] - mean) * inverse * scale[step * i] + shift[step * i];
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) result[i] = (x[i] - mean) * inverse * scale[step * i];
  }
}

// Adds up grad * scale * centred. `scale` is as in apply().
template <bool each>
PLEXAURA_INLINE double sum_products(const float* grad, const float* scale, const float* centred,
                                    std::int64_t count) {
  constexpr std::int64_t step = each ? 1 : 0;
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(grad[i] * scale[step * i] * centred[i]);
  return sum;
}

// The numbers of a row in t = grad * scale * inverse + slope * (2 * centred).
struct RowSlope {
  float inverse;
  float slope;
};

// If the slope is 0, so is the product, as that of mul_no_nan.
PLEXAURA_INLINE float along(float slope, float centred) {
  return slope == 0.F ? slope : slope * (2.F * centred);
}

template <bool each>
PLEXAURA_INLINE double sum_terms(const float* grad, const float* scale, const float* centred,
                                 std::int64_t count, RowSlope by) {
  constexpr std::int64_t step = each ? 1 : 0;
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(grad[i] * scale[step * i] * by.inverse + along(by.slope, centred[i]));
  return sum;
}

template <bool each>
PLEXAURA_INLINE void write_terms(const float* grad, const float* scale, const float* centred,
                                 std::int64_t count, RowSlope by, float mean, float* result) {
  constexpr std::int64_t step = each ? 1 : 0;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    result[i] = grad[i] * scale[step * i] * by.inverse + along(by.slope, centred[i]) - mean;
}

template <bool each, bool centres>
PLEXAURA_INLINE void write_sums_of_terms(const float* grad, const float* scale, const float* centred,
                                         const float* addend, std::int64_t count, RowSlope by, float mean,
                                         float* result) {
  constexpr std::int64_t step = each ? 1 : 0;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float product = grad[i] * scale[step * i] * by.inverse;
    const float other = along(by.slope, centred[i]);
    result[i] = centres ? addend[i] + (product + other) - mean : addend[i] + product + other;
  }
}

// Calls body(first, count, scale) for the runs of a row that share an element of the scale. Without a scale, or if each
// element has its own, there is one run.
template <class Body>
PLEXAURA_INLINE void for_runs(const NormRows& rows, bool scales, const Body& body) {
  if (!scales || rows.run == 1) {
    body(std::int64_t{0}, rows.extent, std::int64_t{0});
    return;
  }
  for (std::int64_t run = 0; run * rows.run < rows.extent; ++run) body(run * rows.run, rows.run, run);
}

// Writes or adds the gradients of scale and shift by one row.
PLEXAURA_INLINE void sum_affine(const NormRows& rows, const float* grad, const float* centred, float inverse,
                                bool adds, float* scale, float* shift) {
  if (rows.run == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < rows.extent; ++i) {
      const float product = grad[i] * (centred[i] * inverse);
      if (scale != nullptr) scale[i] = adds ? scale[i] + product : product;
      if (shift != nullptr) shift[i] = adds ? shift[i] + grad[i] : grad[i];
    }
    return;
  }
  for (std::int64_t run = 0; run * rows.run < rows.extent; ++run) {
    double products = 0;
    double sum = 0;
#pragma omp simd reduction(+ : products, sum)
    for (std::int64_t i = run * rows.run; i < (run + 1) * rows.run; ++i) {
      products += static_cast<double>(grad[i] * (centred[i] * inverse));
      sum += static_cast<double>(grad[i]);
    }
    if (scale != nullptr) scale[run] = static_cast<float>(products);
    if (shift != nullptr) shift[run] = static_cast<float>(sum);
  }
}

constexpr float one = 1;

template <bool each>
PLEXAURA_INLINE void normalise_row(const NormRows& rows, const NormForward& at, std::int64_t row) {
  const std::int64_t first = row * rows.extent;
  const std::int64_t channel = row % rows.groups * (rows.extent / rows.run);
  const float* x = at.x + first;
  const float mean = rows.centres ? mean_of(x, rows.extent) : 0.F;
  float* centred = at.centred == nullptr ? nullptr : at.centred + first;
  const float root = std::sqrt(mean_square(x, rows.extent, mean, centred) + at.epsilon);
  const float inverse = 1 / root;
  if (at.root != nullptr) at.root[row] = root;
  if (at.inverse != nullptr) at.inverse[row] = inverse;
  for_runs(rows, at.scale != nullptr, [&](std::int64_t begin, std::int64_t count, std::int64_t run) {
    const float* scale = at.scale == nullptr ? &one : at.scale + channel + run;
    const float* shift = at.shift == nullptr ? nullptr : at.shift + channel + run;
    float* normal = at.normal == nullptr ? nullptr : at.normal + first + begin;
    apply<each>(x + begin, count, mean, inverse, scale, shift, normal, at.result + first + begin);
  });
}

template <bool each>
PLEXAURA_INLINE void grad_of_row(const NormRows& rows, const NormBackward& at, std::int64_t row) {
  const std::int64_t first = row * rows.extent;
  const std::int64_t channel = row % rows.groups * (rows.extent / rows.run);
  const float* grad = at.grad + first;
  const float* centred = at.centred + first;
  const auto scale_of = [&](std::int64_t run) {
    return at.scale == nullptr ? &one : at.scale + channel + run;
  };
  const bool scales = at.scale != nullptr;
  const auto extent = static_cast<float>(rows.extent);
  double products = 0;
  for_runs(rows, scales, [&](std::int64_t begin, std::int64_t count, std::int64_t run) {
    products += sum_products<each>(grad + begin, scale_of(run), centred + begin, count);
  });
  const float inverse = at.inverse[row];
  const float root = at.root[row];
  const RowSlope by{inverse, -(static_cast<float>(products) / root * inverse) / (2.F * root) / extent};
  float mean = 0;
  if (rows.centres) {
    double sum = 0;
    for_runs(rows, scales, [&](std::int64_t begin, std::int64_t count, std::int64_t run) {
      sum += sum_terms<each>(grad + begin, scale_of(run), centred + begin, count, by);
    });
    mean = static_cast<float>(sum) / extent;
  }
  for_runs(rows, scales, [&](std::int64_t begin, std::int64_t count, std::int64_t run) {
    float* result = at.result + first + begin;
    const float* addend = at.addend == nullptr ? nullptr : at.addend + first + begin;
    if (addend == nullptr)
      write_terms<each>(grad + begin, scale_of(run), centred + begin, count, by, mean, result);
    else if (rows.centres)
      write_sums_of_terms<each, true>(grad + begin, scale_of(run), centred + begin, addend, count, by, mean,
                                      result);
    else
      write_sums_of_terms<each, false>(grad + begin, scale_of(run), centred + begin, addend, count, by, mean,
                                       result);
  });
}

}  // namespace

PLEXAURA_CLONES void normalise_rows(const NormRows& rows, const NormForward& at, std::int64_t begin,
                                    std::int64_t end) {
  const bool each = at.scale != nullptr && rows.run == 1;
  for (std::int64_t row = begin; row < end; ++row)
    each ? normalise_row<true>(rows, at, row) : normalise_row<false>(rows, at, row);
}

PLEXAURA_CLONES void normalise_rows_grad(const NormRows& rows, const NormBackward& at, std::int64_t begin,
                                         std::int64_t end, const NormPartialSums& sums) {
  const bool each = at.scale != nullptr && rows.run == 1;
  const bool shared = rows.share_sums();
  for (std::int64_t row = begin; row < end; ++row) {
    if (sums.scale != nullptr || sums.shift != nullptr) {
      const std::int64_t place = shared ? 0 : row * (rows.extent / rows.run);
      sum_affine(rows, at.grad + row * rows.extent, at.centred + row * rows.extent, at.inverse[row],
                 shared && row > begin, sums.scale == nullptr ? nullptr : sums.scale + place,
                 sums.shift == nullptr ? nullptr : sums.shift + place);
    }
    each ? grad_of_row<true>(rows, at, row) : grad_of_row<false>(rows, at, row);
  }
}

PLEXAURA_CLONES void add_norm_sums(const float* sums, std::int64_t count, std::int64_t stride,
                                   std::int64_t begin, std::int64_t end, float* result) {
  constexpr std::int64_t lanes = 16;
  for (std::int64_t first = begin; first < end; first += lanes) {
    const std::int64_t width = end - first < lanes ? end - first : lanes;
    double totals[lanes] = {};
    for (std::int64_t list = 0; list < count; ++list) {
      const float* values = sums + list * stride + first;
#pragma omp simd
      for (std::int64_t lane = 0; lane < width; ++lane) totals[lane] += static_cast<double>(values[lane]);
    }
    for (std::int64_t lane = 0; lane < width; ++lane) result[first + lane] = static_cast<float>(totals[lane]);
  }
}

}  // namespace plexaura::fast
