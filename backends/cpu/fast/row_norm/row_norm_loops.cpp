#include "backends/cpu/fast/row_norm/row_norm_loops.h"

#include <cmath>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

namespace {

template <class T>
PLEXAURA_INLINE T mean_of(const T* x, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
  return static_cast<T>(sum * (1 / static_cast<double>(count)));
}

// Returns the mean of (x - mean)^2, and writes x - mean unless `centred` is null.
template <class T>
PLEXAURA_INLINE T mean_square(const T* x, std::int64_t count, T mean, T* centred) {
  double sum = 0;
  if (centred == nullptr) {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = x[i] - mean;
      sum += static_cast<double>(value * value);
    }
  } else {
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = x[i] - mean;
      centred[i] = value;
      sum += static_cast<double>(value * value);
    }
  }
  return static_cast<T>(sum * (1 / static_cast<double>(count)));
}

// Writes (x - mean) * inverse to `normal` unless it is null, and applies scale and shift, which are one number each or,
// with `each`, one for each element.
template <bool each, class T>
PLEXAURA_INLINE void apply(const T* x, std::int64_t count, T mean, T inverse, const T* scale, const T* shift,
                           T* normal, T* result) {
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
template <bool each, class T>
PLEXAURA_INLINE double sum_products(const T* grad, const T* scale, const T* centred, std::int64_t count) {
  constexpr std::int64_t step = each ? 1 : 0;
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(grad[i] * scale[step * i] * centred[i]);
  return sum;
}

// The numbers of a row in t = grad * scale * inverse + slope * (2 * centred).
template <class T>
struct RowSlope {
  T inverse;
  T slope;
};

// If the slope is 0, the product is 0 too, as in mul_no_nan().
template <class T>
PLEXAURA_INLINE T along(T slope, T centred) {
  return slope == T(0) ? slope : slope * (T(2) * centred);
}

template <bool each, class T>
PLEXAURA_INLINE double sum_terms(const T* grad, const T* scale, const T* centred, std::int64_t count,
                                 RowSlope<T> by) {
  constexpr std::int64_t step = each ? 1 : 0;
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(grad[i] * scale[step * i] * by.inverse + along(by.slope, centred[i]));
  return sum;
}

template <bool each, class T>
PLEXAURA_INLINE void write_terms(const T* grad, const T* scale, const T* centred, std::int64_t count,
                                 RowSlope<T> by, T mean, T* result) {
  constexpr std::int64_t step = each ? 1 : 0;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    result[i] = grad[i] * scale[step * i] * by.inverse + along(by.slope, centred[i]) - mean;
}

template <bool each, bool centres, class T>
PLEXAURA_INLINE void write_sums_of_terms(const T* grad, const T* scale, const T* centred, const T* addend,
                                         std::int64_t count, RowSlope<T> by, T mean, T* result) {
  constexpr std::int64_t step = each ? 1 : 0;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const T product = grad[i] * scale[step * i] * by.inverse;
    const T other = along(by.slope, centred[i]);
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
template <class T>
PLEXAURA_INLINE void sum_affine(const NormRows& rows, const T* grad, const T* centred, T inverse, bool adds,
                                T* scale, T* shift) {
  if (rows.run == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < rows.extent; ++i) {
      const T product = grad[i] * (centred[i] * inverse);
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
    if (scale != nullptr) scale[run] = static_cast<T>(products);
    if (shift != nullptr) shift[run] = static_cast<T>(sum);
  }
}

template <class T>
constexpr T one = 1;

template <bool each, class T>
PLEXAURA_INLINE void normalise_row(const NormRows& rows, const NormForward<T>& at, std::int64_t row) {
  const std::int64_t first = row * rows.extent;
  const std::int64_t channel = row % rows.groups * (rows.extent / rows.run);
  const T* x = at.x + first;
  const T mean = rows.centres ? mean_of(x, rows.extent) : T(0);
  T* centred = at.centred == nullptr ? nullptr : at.centred + first;
  const T root = std::sqrt(mean_square(x, rows.extent, mean, centred) + at.epsilon);
  const T inverse = 1 / root;
  if (at.root != nullptr) at.root[row] = root;
  if (at.inverse != nullptr) at.inverse[row] = inverse;
  for_runs(rows, at.scale != nullptr, [&](std::int64_t begin, std::int64_t count, std::int64_t run) {
    const T* scale = at.scale == nullptr ? &one<T> : at.scale + channel + run;
    const T* shift = at.shift == nullptr ? nullptr : at.shift + channel + run;
    T* normal = at.normal == nullptr ? nullptr : at.normal + first + begin;
    apply<each>(x + begin, count, mean, inverse, scale, shift, normal, at.result + first + begin);
  });
}

template <bool each, class T>
PLEXAURA_INLINE void grad_of_row(const NormRows& rows, const NormBackward<T>& at, std::int64_t row) {
  const std::int64_t first = row * rows.extent;
  const std::int64_t channel = row % rows.groups * (rows.extent / rows.run);
  const T* grad = at.grad + first;
  const T* centred = at.centred + first;
  const auto scale_of = [&](std::int64_t run) {
    return at.scale == nullptr ? &one<T> : at.scale + channel + run;
  };
  const bool scales = at.scale != nullptr;
  const auto extent = static_cast<T>(rows.extent);
  double products = 0;
  for_runs(rows, scales, [&](std::int64_t begin, std::int64_t count, std::int64_t run) {
    products += sum_products<each>(grad + begin, scale_of(run), centred + begin, count);
  });
  const T inverse = at.inverse[row];
  const T root = at.root[row];
  const RowSlope<T> by{inverse, -(static_cast<T>(products) / root * inverse) / (T(2) * root) / extent};
  T mean = 0;
  if (rows.centres) {
    double sum = 0;
    for_runs(rows, scales, [&](std::int64_t begin, std::int64_t count, std::int64_t run) {
      sum += sum_terms<each>(grad + begin, scale_of(run), centred + begin, count, by);
    });
    mean = static_cast<T>(sum) / extent;
  }
  for_runs(rows, scales, [&](std::int64_t begin, std::int64_t count, std::int64_t run) {
    T* result = at.result + first + begin;
    const T* addend = at.addend == nullptr ? nullptr : at.addend + first + begin;
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

template <class T>
PLEXAURA_INLINE void normalise_all_rows(const NormRows& rows, const NormForward<T>& at, std::int64_t begin,
                                        std::int64_t end) {
  const bool each = at.scale != nullptr && rows.run == 1;
  for (std::int64_t row = begin; row < end; ++row)
    each ? normalise_row<true>(rows, at, row) : normalise_row<false>(rows, at, row);
}

template <class T>
PLEXAURA_INLINE void grad_of_all_rows(const NormRows& rows, const NormBackward<T>& at, std::int64_t begin,
                                      std::int64_t end, const NormPartialSums<T>& sums) {
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

template <class T>
PLEXAURA_INLINE void add_all_sums(const T* sums, std::int64_t count, std::int64_t stride, std::int64_t begin,
                                  std::int64_t end, T* result) {
  constexpr std::int64_t lanes = 16;
  for (std::int64_t first = begin; first < end; first += lanes) {
    const std::int64_t width = end - first < lanes ? end - first : lanes;
    double totals[lanes] = {};
    for (std::int64_t list = 0; list < count; ++list) {
      const T* values = sums + list * stride + first;
#pragma omp simd
      for (std::int64_t lane = 0; lane < width; ++lane) totals[lane] += static_cast<double>(values[lane]);
    }
    for (std::int64_t lane = 0; lane < width; ++lane) result[first + lane] = static_cast<T>(totals[lane]);
  }
}

}  // namespace

#define PLEXAURA_ROW_NORM(T)                                                                              \
  PLEXAURA_CLONES void normalise_rows(const NormRows& rows, const NormForward<T>& at, std::int64_t begin, \
                                      std::int64_t end) {                                                 \
    normalise_all_rows(rows, at, begin, end);                                                             \
  }                                                                                                       \
  PLEXAURA_CLONES void normalise_rows_grad(const NormRows& rows, const NormBackward<T>& at,               \
                                           std::int64_t begin, std::int64_t end,                          \
                                           const NormPartialSums<T>& sums) {                              \
    grad_of_all_rows(rows, at, begin, end, sums);                                                         \
  }                                                                                                       \
  PLEXAURA_CLONES void add_norm_sums(const T* sums, std::int64_t count, std::int64_t stride,              \
                                     std::int64_t begin, std::int64_t end, T* result) {                   \
    add_all_sums(sums, count, stride, begin, end, result);                                                \
  }
PLEXAURA_ROW_NORM(float)
PLEXAURA_ROW_NORM(double)
#undef PLEXAURA_ROW_NORM

}  // namespace plexaura::fast
