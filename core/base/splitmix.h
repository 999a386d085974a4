#pragma once

#include <cstdint>

namespace plexaura {

// The number that SplitMix64 adds in each step (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", 2014).
constexpr std::uint64_t splitmix_step = 0x9e3779b97f4a7c15U;

// The finaliser of SplitMix64, a bijection that scatters a counter.
constexpr std::uint64_t splitmix_scatter(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

}  // namespace plexaura
