#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "backends/cpu/fast/clones.h"
#include "core/loops/std_math.h"

namespace plexaura::fast {

// The functions of float64 that loops need, without branches or tables, so that the loops vectorise. Errors against the
// exact value, in units of the last place: exp 1.5, expm1 2.5, log 2, log1p 4, tanh 3. They use no conversion between
// integers and doubles of 64 bits and no arithmetic shift, which older processors lack.
struct DoubleMath : StdMath {
  static PLEXAURA_INLINE double abs(double x) { return std::fabs(x); }
  static PLEXAURA_INLINE double sqrt(double x) { return std::sqrt(x); }

  // e^x = 2^n e^r with |r| <= ln(2) / 2. e^r is computed by its series; the first omitted term is below 5e-18.
  static PLEXAURA_INLINE double exp(double x) {
    x = x > 710. ? 710. : x;
    x = x < -746. ? -746. : x;
    const Reduced of(x);
    const double power = 1. + (of.r + of.r * of.r * of.tail());
    // Two factors, so that neither overflows or underflows before the result does.
    const double half = (of.n * 0.5 + round) - round;
    return power * power_of_two(half) * power_of_two(of.n - half);
  }

  // e^x - 1 = 2^n (e^r - 1) + (2^n - 1). Above 709 half of it is computed and doubled, so that 2^n is finite.
  static PLEXAURA_INLINE double expm1(double x) {
    double limited = x > 710. ? 710. : x;
    limited = limited < -50. ? -50. : limited;
    const Reduced of(limited);
    const bool is_halved = limited > 709.;
    const double power = power_of_two(of.n - (is_halved ? 1. : 0.));
    const double part = power * (of.r + of.r * of.r * of.tail()) + (power - 1.);
    const double result = std::copysign(is_halved ? 2. * part : part, x);
    return x != x ? x : result;
  }

  // log(2^e m) = e log(2) + 2 artanh(s) with m in [sqrt(1/2), sqrt(2)) and s = (m - 1) / (m + 1). The first
  // omitted term of the series is below 1e-18.
  static PLEXAURA_INLINE double log(double x) {
    constexpr std::uint64_t root_of_half = 0x3fe6a09e667f3bcdU;
    constexpr std::uint64_t fraction = 0x000fffffffffffffU;
    const bool is_small = x < 2.2250738585072014e-308;  // below the smallest normal number
    const double normal = is_small ? x * 0x1p54 : x;
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(normal) - root_of_half + (1024ULL << 52);
    // The exponent + 1024 becomes the fraction of a double between 2^52 and 2^53.
    const double biased = std::bit_cast<double>((bits >> 52) | 0x4330000000000000U) - 0x1p52;
    const double exponent = biased - (is_small ? 1078. : 1024.);
    const double m = std::bit_cast<double>((bits & fraction) + root_of_half);
    const double s = (m - 1.) / (m + 1.);
    const double z = s * s;
    double sum = 2. / 23;
    sum = sum * z + 2. / 21;
    sum = sum * z + 2. / 19;
    sum = sum * z + 2. / 17;
    sum = sum * z + 2. / 15;
    sum = sum * z + 2. / 13;
    sum = sum * z + 2. / 11;
    sum = sum * z + 2. / 9;
    sum = sum * z + 2. / 7;
    sum = sum * z + 2. / 5;
    sum = sum * z + 2. / 3;
    const double value = exponent * log2_high + (2. * s + (s * z * sum + exponent * log2_low));
    const double infinity = std::bit_cast<double>(0x7ff0000000000000U);
    double result = x == infinity ? x : value;
    result = x == 0. ? -infinity : result;
    return x >= 0. ? result : std::bit_cast<double>(0x7ff8000000000000U);
  }

  // log(1 + x) = log(s) * x / (s - 1), where s is 1 + x rounded to double.
  static PLEXAURA_INLINE double log1p(double x) {
    const double sum = 1. + x;
    const double rest = sum - 1.;
    double result = log(sum) * (x / rest);
    result = sum == std::bit_cast<double>(0x7ff0000000000000U) ? sum : result;
    return rest == 0. ? x : result;
  }

  // (e^2|x| - 1) / (e^2|x| + 1). Beyond 22 the result rounds to 1.
  static PLEXAURA_INLINE double tanh(double x) {
    const double size = abs(x);
    const double power = expm1(2. * (size > 22. ? 22. : size));
    return std::copysign(power / (power + 2.), x);
  }

 private:
  static constexpr double round = 0x1.8p52;  // adding it rounds to an integer
  // log(2) in two parts, the first of which has 32 bits, so that its products with exponents have no rounding.
  static constexpr double log2_high = 0x1.62e42feep-1;
  static constexpr double log2_low = 0x1.a39ef35793c76p-33;

  // x = n log(2) + r with a whole number n.
  struct Reduced {
    double n;
    double r;

    PLEXAURA_INLINE explicit Reduced(double x) {
      n = (x * 1.4426950408889634 + round) - round;
      r = (x - n * log2_high) - n * log2_low;
    }

    // Returns (e^r - 1 - r) / r^2.
    PLEXAURA_INLINE double tail() const {
      double sum = 1. / 6227020800;
      sum = sum * r + 1. / 479001600;
      sum = sum * r + 1. / 39916800;
      sum = sum * r + 1. / 3628800;
      sum = sum * r + 1. / 362880;
      sum = sum * r + 1. / 40320;
      sum = sum * r + 1. / 5040;
      sum = sum * r + 1. / 720;
      sum = sum * r + 1. / 120;
      sum = sum * r + 1. / 24;
      sum = sum * r + 1. / 6;
      return sum * r + 0.5;
    }
  };

  // `n` is a whole number from -1022 to 1023.
  static PLEXAURA_INLINE double power_of_two(double n) {
    return std::bit_cast<double>((std::bit_cast<std::uint64_t>(n + (round + 1023.))) << 52);
  }
};

}  // namespace plexaura::fast
