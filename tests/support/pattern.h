#pragma once

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "core/tensor/tensor.h"

namespace plexaura::testing {

// Returns numbers that are exact in every floating dtype and easy to write in another program: element i is
// ((i a + b) mod m - c) / d. The expected figures in these tests were computed by PyTorch 2.2.2 in float64
// from the same numbers.
inline Tensor pattern(const Shape& shape, std::int64_t a = 7, std::int64_t b = 3, std::int64_t m = 11,
                      std::int64_t c = 5, std::int64_t d = 4) {
  Tensor tensor(TensorType{DType::float64, shape});
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.as<double>()[static_cast<std::size_t>(i)] =
        static_cast<double>((i * a + b) % m - c) / static_cast<double>(d);
  return tensor;
}

inline void check_close(const Tensor& actual, const std::vector<double>& expected, double tolerance = 1e-12) {
  const std::vector<double> values = actual.to_doubles();
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i])));
  }
}

}  // namespace plexaura::testing
