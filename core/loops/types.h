#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/loops/std_math.h"
#include "core/tensor/convert.h"
#include "core/tensor/dispatch.h"

namespace plexaura::portable {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;

// The type in which single elements are computed: float for 16-bit floats, and the element's own type for all
// others.
template <class T>
using Compute = std::conditional_t<is_half<T>, float, T>;

// The type in which many products are added up: float for 16-bit floats, and double for wider floats.
template <class T>
using Products = std::conditional_t<is_half<T>, float, double>;

// The type in which many elements are added up: double for floats. Integers are added up modulo 2^64.
template <class T>
using Total = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(static_cast<Compute<T>>(value));
}

// Calls f(std::type_identity<T>{}) for a floating dtype. Other dtypes do not occur, because the ops' shape
// rules refuse them.
template <class F>
void dispatch_floating(DType dtype, F&& f) {
  dispatch(dtype, [&](auto type) {
    if constexpr (std::is_integral_v<typename decltype(type)::type>)
      throw InternalError("a portable kernel for floats was called with another dtype");
    else
      f(type);
  });
}

}  // namespace plexaura::portable
