#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace plexaura {

constexpr std::uint64_t fnv_start = 0xcbf29ce484222325U;

// Returns the 64-bit FNV-1a hash of the text. It is the same on every machine and in every build. To continue
// a hash, pass it as `hash`.
constexpr std::uint64_t fnv(std::string_view text, std::uint64_t hash = fnv_start) {
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return hash;
}

inline std::uint64_t fnv(std::span<const std::byte> bytes, std::uint64_t hash = fnv_start) {
  return fnv(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), hash);
}

}  // namespace plexaura
