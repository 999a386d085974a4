#include "core/loops/gemm.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <vector>

namespace plexaura::portable {

namespace {

struct ProductSize {
  std::int64_t products;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t inner;
};

// Small integers, so that sums are exact in any order.
double left(std::int64_t product, std::int64_t row, std::int64_t k) {
  return static_cast<double>((product + 3 * row + 5 * k) % 7 - 3);
}

double right(std::int64_t product, std::int64_t k, std::int64_t column) {
  return static_cast<double>((2 * product + k + 4 * column) % 9 - 4);
}

// Multiplies by gemm(). Elements that it does not write remain -1.
std::vector<double> multiply_by_tiles(const ProductSize& size) {
  std::vector<double> y(static_cast<std::size_t>(size.products * size.rows * size.columns), -1);
  gemm<double>(
      size.products, size.rows, size.columns, size.inner,
      [](std::int64_t product, std::int64_t row, std::int64_t k, std::int64_t count, double* to) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = left(product, row, k + i);
      },
      [](std::int64_t product, std::int64_t k, std::int64_t column, std::int64_t count, double* to) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = right(product, k, column + i);
      },
      [&](std::int64_t product, std::int64_t row, std::int64_t column, std::int64_t count,
          const double* from) {
        std::copy_n(from, count, y.data() + (product * size.rows + row) * size.columns + column);
      });
  return y;
}

std::vector<double> multiply_by_definition(const ProductSize& size) {
  std::vector<double> y;
  for (std::int64_t product = 0; product < size.products; ++product)
    for (std::int64_t row = 0; row < size.rows; ++row)
      for (std::int64_t column = 0; column < size.columns; ++column) {
        double sum = 0;
        for (std::int64_t k = 0; k < size.inner; ++k)
          sum += left(product, row, k) * right(product, k, column);
        y.push_back(sum);
      }
  return y;
}

}  // namespace

TEST_CASE("products of any size are those of the definition") {
  // One term, sizes that no tile divides, wide tiles with few columns in the last one, and no terms.
  for (const ProductSize size : {ProductSize{1, 1, 1, 1},
                                 {2, 33, 65, 70},
                                 {32, 3, 300, 67},
                                 {40, 2, 256, 64},
                                 {1, 40, 9000, 3},
                                 {3, 2, 5, 0}}) {
    CAPTURE(size.products);
    CAPTURE(size.columns);
    CHECK(multiply_by_tiles(size) == multiply_by_definition(size));
  }
}

TEST_CASE("tiles are as wide as leaves enough of them for many threads") {
  CHECK(columns_of_tile(1, 31, 4) == columns_together);
  CHECK(columns_of_tile(32, 255, 4) == 128);
  CHECK(columns_of_tile(32, 256, 4) == tile_columns);
  CHECK(columns_of_tile(8, 1024, 4) == tile_columns);
  CHECK(columns_of_tile(8, 512, 4) == 128);
  CHECK(columns_of_tile(8, 512, 64) == columns_together);
  CHECK(columns_of_tile(1, 1024, 4) == columns_together);
}

}  // namespace plexaura::portable
