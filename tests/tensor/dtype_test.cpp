#include "core/tensor/dtype.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

namespace plexaura::testing::dtype_test {

namespace {

// Returns the 16-bit number nearest to `value` by a search over all of them, which is slow but certain.
template <class T>
float nearest(float value) {
  float best = 0;
  double distance = std::numeric_limits<double>::infinity();
  std::uint16_t best_bits = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    T candidate;
    candidate.bits = static_cast<std::uint16_t>(bits);
    const float as_float = candidate;
    if (!std::isfinite(as_float)) continue;
    const double off = std::abs(static_cast<double>(as_float) - static_cast<double>(value));
    const bool even = (bits & 1U) == 0 && (best_bits & 1U) != 0;
    if (off < distance || (off == distance && even)) {
      distance = off;
      best = as_float;
      best_bits = candidate.bits;
    }
  }
  return best;
}

}  // namespace

TEST_CASE_TEMPLATE("16-bit floats round to the nearest, ties to even", T, bfloat16, float16) {
  for (const float value :
       {0.0F, 1.0F, -1.0F, 0.1F, 1.0F / 3, 3.14159F, 65504.0F, 1e-5F, 6e-8F, 5.9604645e-8F, 2.9802322e-8F,
        1e-30F, 257.0F, 259.0F, 2049.0F, 2051.0F, -1234.567F})
    CHECK(static_cast<float>(T(value)) == nearest<T>(value));
}

TEST_CASE_TEMPLATE("16-bit floats survive the way there and back, infinities and NaN included", T, bfloat16,
                   float16) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    T value;
    value.bits = static_cast<std::uint16_t>(bits);
    const float wide = value;
    if (std::isnan(wide))
      CHECK(std::isnan(static_cast<float>(T(wide))));
    else
      CHECK(T(wide).bits == value.bits);
  }
  CHECK(std::isinf(static_cast<float>(float16(65520.0F))));
  CHECK(static_cast<float>(float16(65519.0F)) == 65504.0F);
}

TEST_CASE("sizes and names") {
  CHECK(size_of(DType::bfloat16) == 2);
  CHECK(size_of(DType::boolean) == 1);
  CHECK(name_of(DType::boolean) == "bool");
  CHECK(is_floating(DType::float16));
  CHECK(!is_floating(DType::int64));
}

}  // namespace plexaura::testing::dtype_test
