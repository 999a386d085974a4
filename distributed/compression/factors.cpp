#include "distributed/compression/factors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace plexaura {
namespace {

// If less than this share of a vector's length is left after a subtraction, the rest is rounding error.
constexpr double least_share = 1e-5;

// Returns the inner product. Adds into several sums, so that an addition need not wait for the one before.
template <class T>
T dot(std::span<const float> a, std::span<const float> b) {
  std::array<T, 16> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= a.size(); i += sums.size())
    for (std::size_t lane = 0; lane < sums.size(); ++lane)
      sums[lane] += static_cast<T>(a[i + lane]) * static_cast<T>(b[i + lane]);
  for (; i < a.size(); ++i) sums[0] += static_cast<T>(a[i]) * static_cast<T>(b[i]);
  T all = 0;
  for (const T sum : sums) all += sum;
  return all;
}

double length(std::span<const float> vector) { return std::sqrt(dot<double>(vector, vector)); }

void add_scaled(std::span<float> to, float factor, std::span<const float> vector) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * vector[i];
}

void scale(std::span<float> vector, double factor) {
  for (float& value : vector) value = static_cast<float>(factor * double{value});
}

}  // namespace

void multiply(const Matrix& matrix, const Matrix& right, const Matrix& left) {
  for (std::int64_t i = 0; i < matrix.rows(); ++i)
    for (std::int64_t c = 0; c < left.rows(); ++c)
      left.row(c)[static_cast<std::size_t>(i)] = dot<float>(matrix.row(i), right.row(c));
}

void multiply_transposed(const Matrix& matrix, const Matrix& left, const Matrix& right) {
  std::ranges::fill(right.values, 0.0F);
  for (std::int64_t i = 0; i < matrix.rows(); ++i)
    for (std::int64_t c = 0; c < left.rows(); ++c)
      add_scaled(right.row(c), left.row(c)[static_cast<std::size_t>(i)], matrix.row(i));
}

void add_product(const Matrix& matrix, float factor, const Matrix& left, const Matrix& right) {
  for (std::int64_t i = 0; i < matrix.rows(); ++i)
    for (std::int64_t c = 0; c < left.rows(); ++c)
      add_scaled(matrix.row(i), factor * left.row(c)[static_cast<std::size_t>(i)], right.row(c));
}

void normalise(std::span<float> vector) {
  if (const double before = length(vector); before != 0) scale(vector, 1 / before);
}

// Orthogonalises each vector twice: if a vector nearly depends on the others, the first pass leaves mostly
// rounding error.
void orthonormalise(const Matrix& vectors) {
  for (std::int64_t c = 0; c < vectors.rows(); ++c) {
    const std::span<float> own = vectors.row(c);
    const double before = length(own);
    for (int turn = 0; turn < 2; ++turn)
      for (std::int64_t other = 0; other < c; ++other)
        add_scaled(own, static_cast<float>(-dot<double>(own, vectors.row(other))), vectors.row(other));
    if (length(own) <= least_share * before)
      std::ranges::fill(own, 0.0F);
    else
      normalise(own);
  }
}

}  // namespace plexaura
