#include "distributed/compression/factors.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

namespace plexaura::testing::factors_test {

namespace {

using Floats = std::vector<float>;

}  // namespace

TEST_CASE("factors: products of a matrix of two rows") {
  Floats values{1, 2, 3, 4, 5, 6};
  const Matrix matrix{values, 3};
  Floats right{1, 0, -1, 2, 1, 0};
  Floats left(4);
  multiply(matrix, {right, 3}, {left, 2});
  CHECK(left == Floats{-2, -2, 4, 13});
  Floats back(6);
  multiply_transposed(matrix, {left, 2}, {back, 3});
  CHECK(back == Floats{-10, -14, -18, 56, 73, 90});
  add_product(matrix, -0.5F, {left, 2}, {right, 3});
  CHECK(values == Floats{1 + 1 - 4, 2 + 0 - 2, 3 - 1 - 0, 4 + 1 - 13, 5 + 0 - 6.5F, 6 - 1 - 0});
}

TEST_CASE("factors: a product of long vectors has all of their elements") {
  for (const std::size_t length : {15, 16, 17, 1000}) {
    Floats ones(length, 1);
    Floats sum(1);
    multiply({ones, static_cast<std::int64_t>(length)}, {ones, static_cast<std::int64_t>(length)}, {sum, 1});
    CHECK(sum[0] == static_cast<float>(length));
  }
}

TEST_CASE("factors: vectors are made orthonormal, and what depends on others becomes 0") {
  Floats values{3, 4, 0, 4, 3, 0, 7, 7, 0, 0, 0, 0, 1e-20F, 0, 1e-20F};
  orthonormalise({values, 3});
  const Floats expected{0.6F, 0.8F, 0, 0.8F, -0.6F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - expected[i]) < 1e-6);
  }
}

TEST_CASE("factors: vectors of any length are scaled to 1, and NaN stays") {
  for (const float size : {1e-38F, 1.0F, 1e38F}) {
    Floats vector{size, -size, size, size};
    normalise(vector);
    CHECK(vector == Floats{0.5F, -0.5F, 0.5F, 0.5F});
  }
  Floats zeros(2);
  normalise(zeros);
  CHECK(zeros == Floats{0, 0});
  Floats broken{std::numeric_limits<float>::quiet_NaN(), 1};
  orthonormalise({broken, 2});
  CHECK(std::isnan(broken[0]));
}

}  // namespace plexaura::testing::factors_test
