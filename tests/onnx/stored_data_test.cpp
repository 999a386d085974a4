#include "onnx/stored_data.h"

#include <doctest/doctest.h>
#include <limits>

namespace plexaura::stored_data_test {

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Tensor two(float a, float b) { return Tensor::of({2}, std::vector{a, b}); }

}  // namespace

TEST_CASE("a difference names the first element beyond the tolerance") {
  CHECK(onnx::difference(two(1, 100), two(1, 100.05F)).empty());
  CHECK(onnx::difference(two(1, 2), two(1, 3)) == "element 1 is 2, not 3");
  CHECK(onnx::difference(two(1, nan), two(1, 3)) == "element 1 is nan, not 3");
  CHECK(onnx::difference(two(nan, 1), two(nan, 1)).empty());
  CHECK(onnx::difference(two(1, 2), Tensor::of({1}, std::vector{1.0F})) ==
        "the type is float32[2], not float32[1]");
}

TEST_CASE("the largest distance is infinite between NaN and a number") {
  CHECK(onnx::largest_distance(two(1, 5), two(2, 3)) == 2);
  CHECK(onnx::largest_distance(two(nan, 1), two(nan, 1)) == 0);
  CHECK(onnx::largest_distance(two(nan, 1), two(0, 1)) == std::numeric_limits<double>::infinity());
}

}  // namespace plexaura::stored_data_test
