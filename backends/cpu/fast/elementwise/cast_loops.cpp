#include "backends/cpu/fast/elementwise/cast_loops.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "backends/cpu/fast/clones.h"
#include "core/tensor/convert.h"

namespace plexaura::fast {

namespace {

constexpr std::uint32_t infinity = 0x7f800000;

// The conversions of float16 without branches and calls, so that the loops vectorise.
PLEXAURA_INLINE float widened(std::uint32_t half) {
  const std::uint32_t size = half & 0x7fffU;
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const float denormal = static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24F;
  const std::uint32_t normal = (size << 13) + 0x38000000U;  // moves the bias of the exponent from 15 to 127
  const std::uint32_t special = (size << 13) | infinity;
  std::uint32_t bits = size < 0x400U ? std::bit_cast<std::uint32_t>(denormal) : normal;
  bits = size >= 0x7c00U ? special : bits;
  return std::bit_cast<float>(bits | sign);
}

PLEXAURA_INLINE std::uint16_t narrowed(float value) {
  const auto wide = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t size = wide & 0x7fffffffU;
  // The unit in the last place of 0.5 is the smallest denormal of float16, so that the sum is rounded to it.
  const auto denormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;
  const std::uint32_t normal = (size - 0x38000000U + 0xfffU + ((size >> 13) & 1U)) >> 13;
  const std::uint32_t special = size > infinity ? 0x7e00U : 0x7c00U;
  std::uint32_t half = size < 0x38800000U ? denormal : normal;
  half = size >= 0x47800000U ? special : half;  // rounds 65536 and larger numbers to infinity, and keeps NaN
  return static_cast<std::uint16_t>(half | ((wide >> 16) & 0x8000U));
}

template <class To, class From>
PLEXAURA_INLINE To cast_of(From value) {
  if constexpr (std::is_same_v<From, float16>) {
    return convert<To>(widened(value.bits));
  } else if constexpr (std::is_same_v<To, float16>) {
    To result;
    result.bits = narrowed(value);
    return result;
  } else {
    return convert<To>(value);
  }
}

template <class From, class To>
PLEXAURA_INLINE void cast_elements(const From* from, To* to, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = cast_of<To>(from[i]);
}

#define PLEXAURA_CASTS(cast)                                                                                 \
  cast(float, bfloat16) cast(bfloat16, float) cast(float, float16) cast(float16, float) cast(float, double)  \
      cast(double, float) cast(std::uint8_t, float) cast(bool, float) cast(std::int32_t, float)              \
          cast(std::int64_t, float) cast(float, std::int64_t) cast(bool, double) cast(bool, bfloat16)        \
              cast(bool, float16) cast(bool, std::int64_t) cast(bool, std::int32_t) cast(bool, std::uint8_t) \
                  cast(double, bool) cast(float, bool) cast(std::int64_t, bool) cast(std::uint8_t, bool)     \
                      cast(double, std::int64_t) cast(std::int64_t, double) cast(std::int32_t, double)       \
                          cast(std::uint8_t, double) cast(std::int32_t, std::int64_t)                        \
                              cast(std::int64_t, std::int32_t) cast(std::uint8_t, std::int64_t)

#define PLEXAURA_CAST(From, To)                                                 \
  PLEXAURA_CLONES void cast_all(const From* from, To* to, std::int64_t count) { \
    cast_elements(from, to, count);                                             \
  }
PLEXAURA_CASTS(PLEXAURA_CAST)
#undef PLEXAURA_CAST

struct DTypeCast {
  DType from;
  DType to;
  CastLoop loop;
};

#define PLEXAURA_CAST(From, To)                                                                          \
  DTypeCast{dtype_of<From>, dtype_of<To>, [](const std::byte* from, std::byte* to, std::int64_t count) { \
              cast_all(reinterpret_cast<const From*>(from), reinterpret_cast<To*>(to), count);           \
            }},
const DTypeCast casts[] = {PLEXAURA_CASTS(PLEXAURA_CAST)};
#undef PLEXAURA_CAST

}  // namespace

CastLoop find_cast(DType from, DType to) {
  const auto* found =
      std::ranges::find_if(casts, [&](const DTypeCast& one) { return one.from == from && one.to == to; });
  return found == std::end(casts) ? nullptr : found->loop;
}

}  // namespace plexaura::fast
