#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "backends/cuda/kernels/block.h"
#include "core/loops/std_math.h"
#include "core/tensor/dispatch.h"

namespace plexaura::cuda {

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

template <class To, class From>
PLEXAURA_HD inline To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  union {
    From from;
    To to;
  } bits{from};
  return bits.to;
}

PLEXAURA_DEVICE inline float widen_half(float16 x) {
#ifdef __CUDACC__
  return __half2float(__ushort_as_half(x.bits));
#else
  return x;
#endif
}

PLEXAURA_DEVICE inline float16 narrow_half(float x) {
#ifdef __CUDACC__
  float16 half;
  half.bits = __half_as_ushort(__float2half_rn(x));
  return half;
#else
  return float16(x);
#endif
}

// Every NaN becomes the same one on a GPU.
PLEXAURA_DEVICE inline bfloat16 narrow_short_fraction(float x) {
#ifdef __CUDACC__
  bfloat16 half;
  half.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
  return half;
#else
  return bfloat16(x);
#endif
}

// Converts an element to the type in which it is computed.
template <class T>
PLEXAURA_DEVICE inline Compute<T> widen(T x) {
  if constexpr (std::is_same_v<T, bfloat16>)
    return same_bits<float>(static_cast<std::uint32_t>(x.bits) << 16);
  else if constexpr (std::is_same_v<T, float16>)
    return widen_half(x);
  else
    return x;
}

// Converts a computed number to an element. Rounds to nearest even. A double is rounded to float first if the
// element has 16 bits, and so is rounded twice.
template <class T, class Wide>
PLEXAURA_DEVICE inline T narrow(Wide wide) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    return narrow_short_fraction(static_cast<float>(wide));
  } else if constexpr (std::is_same_v<T, float16>) {
    return narrow_half(static_cast<float>(wide));
  } else {
    return static_cast<T>(wide);
  }
}

// Returns a * b + c, rounded once, as one instruction of a GPU.
template <class T>
PLEXAURA_DEVICE inline T multiply_add(T a, T b, T c) {
  return std::fma(a, b, c);
}

template <class T>
PLEXAURA_DEVICE inline bool is_nan(T x) {
  const auto wide = widen(x);
  return wide != wide;
}

// Converts one element to another type. Floats to integers truncate; values that do not fit become the
// nearest value that does, and NaN becomes 0.
template <class To, class From>
PLEXAURA_DEVICE inline To convert(From value) {
  const auto wide = widen(value);
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, bool>) {
    return wide != decltype(wide)(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<Compute<From>>) {
    constexpr To smallest = std::numeric_limits<To>::min();
    constexpr To largest = std::numeric_limits<To>::max();
    const auto number = static_cast<double>(wide);
    if (number != number) return 0;
    if (number <= static_cast<double>(smallest)) return smallest;
    return number >= static_cast<double>(largest) ? largest : static_cast<To>(number);
  } else {
    return narrow<To>(wide);
  }
}

// The functions that the functors of core/ops/functors.h call.
using Math = StdMath;

// Calls f(std::type_identity<T>{}) for a floating dtype. Other dtypes do not occur, because the ops' shape
// rules refuse them.
template <class F>
void dispatch_floating(DType dtype, F&& f) {
  dispatch(dtype, [&](auto type) {
    if constexpr (std::is_integral_v<typename decltype(type)::type>)
      throw InternalError("a kernel for floats was called with another dtype");
    else
      f(type);
  });
}

// Calls f with an unsigned type of the dtype's size. It serves kernels that only move elements.
template <class F>
void dispatch_size(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1:
      return f(std::type_identity<std::uint8_t>{});
    case 2:
      return f(std::type_identity<std::uint16_t>{});
    case 4:
      return f(std::type_identity<std::uint32_t>{});
    default:
      return f(std::type_identity<std::uint64_t>{});
  }
}

}  // namespace plexaura::cuda
