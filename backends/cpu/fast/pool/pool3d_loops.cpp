#include "backends/cpu/fast/pool/pool3d_loops.h"

#include <algorithm>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

PoolRanges::PoolRanges(const PoolAxis& axis, bool count_include_pad) {
  for (std::int64_t place = 0; place < axis.output; ++place) {
    begin.push_back(static_cast<std::int32_t>(axis.begin(place)));
    end.push_back(static_cast<std::int32_t>(axis.end(place)));
    share.push_back(1 / static_cast<double>(axis.divisor(place, count_include_pad)));
  }
  for (std::int64_t position = 0; position < axis.input; ++position) {
    first_viewer.push_back(static_cast<std::int32_t>(axis.first_viewer(position)));
    last_viewer.push_back(static_cast<std::int32_t>(axis.last_viewer(position)));
  }
}

namespace {

// Calls body(d, h) for the rows of the image in the window at a place.
template <class Body>
PLEXAURA_INLINE void for_rows(const PoolRanges3d& ranges, std::size_t place_d, std::size_t place_h,
                              const Body& body) {
  for (std::int64_t d = ranges.d.begin[place_d]; d < ranges.d.end[place_d]; ++d)
    for (std::int64_t h = ranges.h.begin[place_h]; h < ranges.h.end[place_h]; ++h) body(d, h);
}

template <class T>
PLEXAURA_INLINE void average_row(const PoolRanges3d& ranges, std::size_t place_d, std::size_t place_h,
                                 const T* x, T* y) {
  const std::int64_t width = ranges.w.inputs();
  double columns[longest_pool_row];
  for (std::int64_t w = 0; w < width; ++w) columns[w] = 0;
  for_rows(ranges, place_d, place_h, [&](std::int64_t d, std::int64_t h) {
    const T* row = x + (d * ranges.h.inputs() + h) * width;
#pragma omp simd
    for (std::int64_t w = 0; w < width; ++w) columns[w] += static_cast<double>(row[w]);
  });
  const double share = ranges.d.share[place_d] * ranges.h.share[place_h];
  for (std::size_t place = 0; place < ranges.w.begin.size(); ++place) {
    double sum = 0;
    for (std::int64_t w = ranges.w.begin[place]; w < ranges.w.end[place]; ++w) sum += columns[w];
    y[place] = static_cast<T>(sum * (share * ranges.w.share[place]));
  }
}

template <class T>
PLEXAURA_INLINE void spread_row(const PoolRanges3d& ranges, std::size_t d, std::size_t h, const T* grad,
                                T* result) {
  const std::int64_t width = ranges.w.outputs();
  double columns[longest_pool_row];
  for (std::int64_t w = 0; w < width; ++w) columns[w] = 0;
  for (auto place_d = ranges.d.first_viewer[d]; place_d <= ranges.d.last_viewer[d]; ++place_d)
    for (auto place_h = ranges.h.first_viewer[h]; place_h <= ranges.h.last_viewer[h]; ++place_h) {
      const double share = ranges.d.share[static_cast<std::size_t>(place_d)] *
                           ranges.h.share[static_cast<std::size_t>(place_h)];
      const T* row = grad + (place_d * ranges.h.outputs() + place_h) * width;
      const double* shares = ranges.w.share.data();
#pragma omp simd
      for (std::int64_t w = 0; w < width; ++w)
        columns[w] += static_cast<double>(row[w]) * (share * shares[w]);
    }
  for (std::size_t w = 0; w < ranges.w.first_viewer.size(); ++w) {
    double sum = 0;
    for (auto place = ranges.w.first_viewer[w]; place <= ranges.w.last_viewer[w]; ++place)
      sum += columns[place];
    result[w] = static_cast<T>(sum);
  }
}

// Returns true if `value` is larger than `chosen`, or the first NaN.
template <class T>
PLEXAURA_INLINE bool is_larger(T value, T chosen) {
  return (value > chosen) | ((value != value) & (chosen == chosen));
}

// Chooses the first largest element of each column of the image, and then among the columns of each window.
template <class T>
PLEXAURA_INLINE void choose_row(const PoolRanges3d& ranges, std::size_t place_d, std::size_t place_h,
                                const T* x, T* y, std::int64_t* index) {
  const std::int64_t width = ranges.w.inputs();
  T largest[longest_pool_row];
  std::int32_t positions[longest_pool_row];
  const std::int64_t top = (ranges.d.begin[place_d] * ranges.h.inputs() + ranges.h.begin[place_h]) * width;
  for (std::int64_t w = 0; w < width; ++w) {
    largest[w] = x[top + w];
    positions[w] = static_cast<std::int32_t>(top + w);
  }
  for_rows(ranges, place_d, place_h, [&](std::int64_t d, std::int64_t h) {
    const std::int64_t first = (d * ranges.h.inputs() + h) * width;
    const T* row = x + first;
#pragma omp simd
    for (std::int64_t w = 0; w < width; ++w) {
      const bool larger = is_larger(row[w], largest[w]);
      largest[w] = larger ? row[w] : largest[w];
      positions[w] = larger ? static_cast<std::int32_t>(first + w) : positions[w];
    }
  });
  for (std::size_t place = 0; place < ranges.w.begin.size(); ++place) {
    std::int64_t chosen = ranges.w.begin[place];
    for (std::int64_t w = chosen + 1; w < ranges.w.end[place]; ++w) {
      const bool ties =
          largest[w] == largest[chosen] || (largest[w] != largest[w] && largest[chosen] != largest[chosen]);
      if (ties ? positions[w] < positions[chosen] : is_larger(largest[w], largest[chosen])) chosen = w;
    }
    if (y != nullptr) y[place] = largest[chosen];
    if (index != nullptr) index[place] = positions[chosen];
  }
}

// True if the same windows contain a position and the one before it.
PLEXAURA_INLINE bool repeats_viewers(const PoolRanges& axis, std::size_t position) {
  return position > 0 && axis.first_viewer[position] == axis.first_viewer[position - 1] &&
         axis.last_viewer[position] == axis.last_viewer[position - 1];
}

template <class T>
PLEXAURA_INLINE void average_image(const PoolRanges3d& ranges, const T* x, T* y) {
  for (std::size_t d = 0; d < ranges.d.begin.size(); ++d)
    for (std::size_t h = 0; h < ranges.h.begin.size(); ++h, y += ranges.w.outputs())
      average_row(ranges, d, h, x, y);
}

// Rows and planes that the same windows contain have the same gradient, which is computed once and copied.
template <class T>
PLEXAURA_INLINE void spread_image(const PoolRanges3d& ranges, const T* grad, T* result) {
  const std::int64_t width = ranges.w.inputs();
  const std::int64_t plane = ranges.h.inputs() * width;
  for (std::size_t d = 0; d < ranges.d.first_viewer.size(); ++d) {
    if (repeats_viewers(ranges.d, d)) {
      result = std::copy_n(result - plane, plane, result);
      continue;
    }
    for (std::size_t h = 0; h < ranges.h.first_viewer.size(); ++h, result += width) {
      if (repeats_viewers(ranges.h, h))
        std::copy_n(result - width, width, result);
      else
        spread_row(ranges, d, h, grad, result);
    }
  }
}

template <class T>
PLEXAURA_INLINE void choose_image(const PoolRanges3d& ranges, const T* x, T* y, std::int64_t* index) {
  const std::int64_t width = ranges.w.outputs();
  for (std::size_t d = 0; d < ranges.d.begin.size(); ++d)
    for (std::size_t h = 0; h < ranges.h.begin.size(); ++h) {
      choose_row(ranges, d, h, x, y, index);
      if (y != nullptr) y += width;
      if (index != nullptr) index += width;
    }
}

template <class T>
void add_to_chosen(const PoolRanges3d& ranges, const T* grad, const std::int64_t* index, T* result) {
  std::fill_n(result, ranges.voxels(), T(0));
  for (std::int64_t place = 0; place < ranges.places(); ++place) result[index[place]] += grad[place];
}

#define PLEXAURA_POOL3D(T)                                                                             \
  PLEXAURA_CLONES void average_of_##T(const PoolRanges3d& ranges, const T* x, T* y) {                  \
    average_image(ranges, x, y);                                                                       \
  }                                                                                                    \
  PLEXAURA_CLONES void average_grad_of_##T(const PoolRanges3d& ranges, const T* grad, T* result) {     \
    spread_image(ranges, grad, result);                                                                \
  }                                                                                                    \
  PLEXAURA_CLONES void max_of_##T(const PoolRanges3d& ranges, const T* x, T* y, std::int64_t* index) { \
    choose_image(ranges, x, y, index);                                                                 \
  }
PLEXAURA_POOL3D(float)
PLEXAURA_POOL3D(double)
#undef PLEXAURA_POOL3D

}  // namespace

template <>
Pool3dLoops<float> pool3d_loops() {
  return {average_of_float, average_grad_of_float, max_of_float, add_to_chosen<float>};
}

template <>
Pool3dLoops<double> pool3d_loops() {
  return {average_of_double, average_grad_of_double, max_of_double, add_to_chosen<double>};
}

}  // namespace plexaura::fast
