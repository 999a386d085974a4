#include "core/tensor/shape.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"

namespace plexaura::testing::shape_test {

TEST_CASE("shapes: elements, strides, text") {
  CHECK(Shape{}.elements() == 1);
  CHECK(Shape{2, 0, 3}.elements() == 0);
  CHECK(Shape{2, 3, 4}.strides() == std::vector<std::int64_t>{12, 4, 1});
  CHECK(to_string(Shape{2, 3}) == "[2,3]");
  CHECK(to_string(TensorType{DType::bfloat16, {2}}) == "bfloat16[2]");
  CHECK(TensorType{DType::float64, {2, 3}}.bytes() == 48);
  CHECK(user_error([] { Shape{2, -1}; }).find("negative extent") != std::string::npos);
}

TEST_CASE("a shape's elements, strides and bytes can be counted") {
  constexpr std::int64_t large = std::int64_t{1} << 30;
  CHECK(Shape{large, large - 1}.elements() == large * (large - 1));
  CHECK(user_error([] {
          Shape{large, large};
        }) ==
        "the shape [1073741824,1073741824] has more bytes than a 64-bit number can count; make it smaller");
  CHECK(!user_error([] { Shape{0, large, large}; }).empty());
}

TEST_CASE("broadcasting follows numpy") {
  CHECK(broadcast({3, 1}, {4}) == Shape{3, 4});
  CHECK(broadcast({}, {2, 3}) == Shape{2, 3});
  CHECK(broadcast({1, 3}, {0, 3}) == Shape{0, 3});
  CHECK(broadcast({0}, {1}) == Shape{0});
  CHECK(broadcast({2, 1, 3}, {5, 1}) == Shape{2, 5, 3});
  CHECK_THROWS_AS(broadcast({0}, {2}), std::invalid_argument);
  CHECK(error_text<std::invalid_argument>([] {
          broadcast({2, 3}, {2, 4});
        }).find("axis -1: 3 and 4") != std::string::npos);
}

TEST_CASE("negative axes count from the back") {
  CHECK(normalise_axis(-1, 3) == 2);
  CHECK(normalise_axis(0, 3) == 0);
  CHECK_THROWS_AS(normalise_axis(3, 3), std::invalid_argument);
  CHECK_THROWS_AS(normalise_axis(0, 0), std::invalid_argument);
}

}  // namespace plexaura::testing::shape_test
