#include "app/choices/automatic_precision.h"

#include <doctest/doctest.h>

namespace plexaura {

TEST_CASE("bfloat16 is taken only if it saves a twentieth of the time") {
  CHECK(PrecisionTimes{.float32 = 1, .bfloat16 = 0.5}.faster() == "bfloat16");
  CHECK(PrecisionTimes{.float32 = 2, .bfloat16 = 1.9}.faster() == "bfloat16");
  CHECK(PrecisionTimes{.float32 = 1, .bfloat16 = 0.96}.faster() == "float32");
  CHECK(PrecisionTimes{.float32 = 1, .bfloat16 = 5}.faster() == "float32");
}

}  // namespace plexaura
