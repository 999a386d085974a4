#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/cpu/std_math.h"
#include "core/tensor/dispatch.h"

namespace plexaura::portable {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;

// What an element is computed in: 16-bit floats in float, all others in their own type.
template <class T>
using Compute = std::conditional_t<is_half<T>, float, T>;

// What many products are added up in: 16-bit floats in float, wider floats in double.
template <class T>
using Products = std::conditional_t<is_half<T>, float, double>;

// What many elements are added up in: floats in double, integers modulo 2^64.
template <class T>
using Total = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(static_cast<Compute<T>>(value));
}

// One element as another type. Floats to integers truncate; what does not fit becomes the nearest value that
// does, NaN becomes 0.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<Compute<From>>(value) != Compute<From>(0);
  } else if constexpr (is_half<To>) {
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

// Calls f(std::type_identity<T>{}) for a floating dtype. The shape rules have refused all others.
template <class F>
void dispatch_floating(DType dtype, F&& f) {
  dispatch(dtype, [&](auto type) {
    if constexpr (std::is_integral_v<typename decltype(type)::type>)
      throw InternalError("a portable kernel for floats was given another dtype");
    else
      f(type);
  });
}

}  // namespace plexaura::portable
