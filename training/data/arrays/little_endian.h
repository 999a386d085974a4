#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>

namespace plexaura {

// Reads a number that is stored with its least significant byte first, at `offset` of `bytes`, which must reach to the
// end of the number.
template <std::unsigned_integral T>
T little_endian(std::span<const std::byte> bytes, std::size_t offset) {
  std::array<std::byte, sizeof(T)> number{};
  std::memcpy(number.data(), bytes.subspan(offset, sizeof(T)).data(), sizeof(T));
  if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(number);
  return std::bit_cast<T>(number);
}

}  // namespace plexaura
