#pragma once

#include <cstdint>
#include <span>

// Arithmetic of low-rank matrices. Each function computes in a fixed order, so that ranks with the same
// numbers get the same bits.
namespace plexaura {

// A row-major matrix.
struct Matrix {
  std::span<float> values;
  std::int64_t columns = 0;

  std::int64_t rows() const { return static_cast<std::int64_t>(values.size()) / columns; }
  std::span<float> row(std::int64_t index) const {
    return values.subspan(static_cast<std::size_t>(index * columns), static_cast<std::size_t>(columns));
  }
};

// In the functions below, vectors are the rows of a matrix.

// left[c] = matrix * right[c]
void multiply(const Matrix& matrix, const Matrix& right, const Matrix& left);
// right[c] = transposed matrix * left[c]
void multiply_transposed(const Matrix& matrix, const Matrix& left, const Matrix& right);
// Adds factor * (sum over c of left[c] * transposed right[c]) to `matrix`.
void add_product(const Matrix& matrix, float factor, const Matrix& left, const Matrix& right);

// Scales a vector to length 1. Leaves a vector of zeros unchanged.
void normalise(std::span<float> vector);
// Makes each vector orthogonal to those before it, and scales it to length 1. A vector that depends linearly
// on those before it, up to rounding, becomes 0.
void orthonormalise(const Matrix& vectors);

}  // namespace plexaura
