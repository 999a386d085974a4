#include "distributed/server/shared_weights.h"

#include <doctest/doctest.h>

namespace plexaura::testing::shared_weights_test {

TEST_CASE("shared weights: have elements of two types, and others are a mistake") {
  std::size_t bytes = 0;
  const auto note = [&](auto element) { bytes = sizeof element; };
  with_elements(DType::float64, note);
  CHECK(bytes == sizeof(double));
  with_elements(DType::float32, note);
  CHECK(bytes == sizeof(float));
  CHECK_THROWS_WITH_AS(with_elements(DType::int64, note),
                       "a parameter server takes weights of float64 or float32, not int64: cast them first",
                       UserError);
}

}  // namespace plexaura::testing::shared_weights_test
