#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/export.h"

namespace plexaura {

enum class DType : std::uint8_t { float64, float32, bfloat16, float16, int64, int32, uint8, boolean };

// A 16-bit float that is the upper half of a float32: 8 bits of exponent, 7 of fraction. Rounds to nearest
// even.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (wide & 0x7fffffffU) > 0x7f800000U;
    bits = static_cast<std::uint16_t>(is_nan ? (wide >> 16) | 0x40U
                                             : (wide + 0x7fffU + ((wide >> 16) & 1U)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

// A 16-bit float as in IEEE 754 binary16: 5 bits of exponent, 10 of fraction. Rounds to nearest even.
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;
  explicit float16(float value) : bits(encode(value)) {}
  operator float() const { return decode(bits); }

  static PLEXAURA_API std::uint16_t encode(float value);
  static PLEXAURA_API float decode(std::uint16_t bits);
};

PLEXAURA_API std::size_t size_of(DType dtype);  // bytes of one element
PLEXAURA_API std::string_view name_of(DType dtype);
PLEXAURA_API bool is_floating(DType dtype);

template <class T>
struct DTypeOf;
#define PLEXAURA_DTYPE(type, value)              \
  template <>                                    \
  struct DTypeOf<type> {                         \
    static constexpr DType dtype = DType::value; \
  };
PLEXAURA_DTYPE(double, float64)
PLEXAURA_DTYPE(float, float32)
PLEXAURA_DTYPE(bfloat16, bfloat16)
PLEXAURA_DTYPE(float16, float16)
PLEXAURA_DTYPE(std::int64_t, int64)
PLEXAURA_DTYPE(std::int32_t, int32)
PLEXAURA_DTYPE(std::uint8_t, uint8)
PLEXAURA_DTYPE(bool, boolean)
#undef PLEXAURA_DTYPE

// The dtype whose elements have the C++ type T.
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::dtype;

}  // namespace plexaura
