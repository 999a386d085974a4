#include "core/tensor/dtype.h"

#include <array>
#include <cmath>
#include <utility>

namespace plexaura {

namespace {

struct Traits {
  std::size_t size;
  std::string_view name;
  bool floating;
};

const Traits& traits_of(DType dtype) {
  static constexpr std::array<Traits, 8> traits{{{8, "float64", true},
                                                 {4, "float32", true},
                                                 {2, "bfloat16", true},
                                                 {2, "float16", true},
                                                 {8, "int64", false},
                                                 {4, "int32", false},
                                                 {1, "uint8", false},
                                                 {1, "bool", false}}};
  return traits.at(static_cast<std::size_t>(dtype));
}

}  // namespace

std::size_t size_of(DType dtype) { return traits_of(dtype).size; }
std::string_view name_of(DType dtype) { return traits_of(dtype).name; }
bool is_floating(DType dtype) { return traits_of(dtype).floating; }

std::uint16_t float16::encode(float value) {
  const auto wide = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((wide >> 16) & 0x8000U);
  const std::uint32_t magnitude = wide & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x477ff000U)
    return static_cast<std::uint16_t>(sign | 0x7c00U);  // rounds to 2^16 or more, and so to infinity
  if (magnitude < 0x38800000U) {  // below the least normal number, 2^-14: a multiple of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24F;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::nearbyint(scaled)));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

float float16::decode(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float subnormal = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -subnormal : subnormal;
}

}  // namespace plexaura
