#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/base/splitmix.h"

namespace plexaura {

// A small generator of pseudo-random numbers with the same stream on every platform: SplitMix64. Cheap
// to make, so that each sample has its own. Not thread-safe.
class Random {
 public:
  // The stream of a key such as {seed, epoch, index}: each part, and the place of each part, changes it.
  explicit Random(std::initializer_list<std::uint64_t> key) {
    for (const std::uint64_t part : key)
      state_ = splitmix_scatter(state_ + splitmix_step) ^ splitmix_scatter(part);
  }

  std::uint64_t bits() { return splitmix_scatter(state_ += splitmix_step); }

  // A whole number in [0, limit), each equally likely; `limit` is at least 1.
  std::uint64_t below(std::uint64_t limit) {
    // 2^64 modulo limit: so many values would favour small numbers.
    const std::uint64_t surplus = (0 - limit) % limit;
    std::uint64_t value = bits();
    while (value < surplus) value = bits();
    return value % limit;
  }

  // A number in [low, high).
  double uniform(double low = 0, double high = 1) {
    return low + (high - low) * (static_cast<double>(bits() >> 11) * 0x1p-53);
  }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace plexaura
