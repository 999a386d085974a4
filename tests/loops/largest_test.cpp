#include "core/loops/largest.h"

#include <doctest/doctest.h>
#include <limits>

#include "core/loops/types.h"

namespace plexaura::portable {

TEST_CASE("the largest of some elements ignores NaNs") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const float elements[] = {nan, -3, -2, -5, nan, 7};
  CHECK(largest_of(elements, 6) == 7);
  CHECK(largest_of(elements, 5) == -2);
  CHECK(largest_of(elements, 3, 2) == -2);
  CHECK(largest_of(elements, 1) == -infinity);
  CHECK(largest_of(elements, 0) == -infinity);
  const bfloat16 halves[] = {bfloat16(-0.5F), bfloat16(-1.5F)};
  CHECK(largest_of(halves, 2) == -0.5);
}

}  // namespace plexaura::portable
