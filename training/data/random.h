#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

#include "core/base/splitmix.h"

namespace plexaura {

// A generator of pseudo-random numbers with the same sequence on every platform: SplitMix64. Construction is
// cheap, so each sample has a generator of its own. Not thread-safe.
class Random {
 public:
  // Makes the sequence for a key such as {seed, epoch, index}. It depends on each part of the key and on the
  // order of the parts.
  explicit Random(std::initializer_list<std::uint64_t> key) {
    for (const std::uint64_t part : key)
      state_ = splitmix_scatter(state_ + splitmix_step) ^ splitmix_scatter(part);
  }

  std::uint64_t bits() { return splitmix_scatter(state_ += splitmix_step); }

  // Returns a uniformly distributed whole number in [0, limit); `limit` is at least 1.
  std::uint64_t below(std::uint64_t limit) {
    // 2^64 modulo limit: this many values are rejected, because they would make small numbers more likely.
    const std::uint64_t surplus = (0 - limit) % limit;
    std::uint64_t value = bits();
    while (value < surplus) value = bits();
    return value % limit;
  }

  // Returns a number from `low` on and below `high`; rounding may make it `high`.
  double uniform(double low = 0, double high = 1) {
    return low + (high - low) * (static_cast<double>(bits() >> 11) * 0x1p-53);
  }

  // Returns two independent normally distributed numbers with mean 0 and deviation 1. Source: Box and Muller,
  // A Note on the Generation of Random Normal Deviates, 1958.
  std::array<double, 2> normals() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    return {radius * std::cos(angle), radius * std::sin(angle)};
  }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace plexaura
