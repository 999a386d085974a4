#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace plexaura {

constexpr std::uint64_t fnv_start = 0xcbf29ce484222325U;

// FNV-1a of 64 bits: the same on every machine and in every build. Pass the hash of what came before to go on
// from it.
constexpr std::uint64_t fnv(std::string_view text, std::uint64_t hash = fnv_start) {
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  return hash;
}

inline std::uint64_t fnv(std::span<const std::byte> bytes, std::uint64_t hash = fnv_start) {
  return fnv(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), hash);
}

}  // namespace plexaura
