#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/tensor/dtype.h"

namespace plexaura {

// Converts one element to another type. Floats to integers truncate; values that do not fit become the nearest value that
// does, and NaN becomes 0. Integers to smaller ones wrap around. Converted to bool, zero is false, and every other value
// is true.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<double>(value) != 0;
  } else if constexpr (std::is_same_v<To, bfloat16> || std::is_same_v<To, float16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    constexpr To smallest = std::numeric_limits<To>::min();
    constexpr To largest = std::numeric_limits<To>::max();
    const auto wide = static_cast<double>(value);
    if (wide != wide) return 0;
    if (wide <= static_cast<double>(smallest)) return smallest;
    return wide >= static_cast<double>(largest) ? largest : static_cast<To>(wide);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace plexaura
