#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "backends/cpu/fast/clones.h"
#include "core/loops/std_math.h"

namespace plexaura::fast {

// The functions of float64 that loops need, without branches or tables, so that the loops vectorise. Errors against the
// exact value, in units of the last place: exp and exp2 1.5, expm1 2.5, log 2, log2 and log10 3.5, log1p 4, tanh 3, sinh 4,
// cosh 2.5, asinh 6, atanh 5, hypot 2, atan2 and atan 3, asin and acos 4. They use no conversion between integers and
// doubles of 64 bits and no arithmetic shift, which older processors lack.
struct DoubleMath : StdMath {
  static PLEXAURA_INLINE double abs(double x) { return std::fabs(x); }
  static PLEXAURA_INLINE double sqrt(double x) { return std::sqrt(x); }

  static PLEXAURA_INLINE double exp(double x) {
    x = x > 710. ? 710. : x;
    x = x < -746. ? -746. : x;
    return Reduced(x).exponential(0.);
  }

  // 2^x = 2^n e^(r log(2)) with |r| <= 1/2.
  static PLEXAURA_INLINE double exp2(double x) {
    x = x > 1025. ? 1025. : x;
    x = x < -1076. ? -1076. : x;
    const double n = (x + round) - round;
    return Reduced(n, (x - n) * 0.69314718055994531).exponential(0.);
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

  static PLEXAURA_INLINE double log(double x) {
    const LogParts of(x);
    return of.unless_special(x, of.exponent * log2_high + (2. * of.s + (of.tail + of.exponent * log2_low)));
  }

  static PLEXAURA_INLINE double log2(double x) {
    const LogParts of(x);
    return of.unless_special(x, of.exponent + (2. * of.s + of.tail) * 1.4426950408889634);
  }

  // The first part of log10(2) has 32 bits, so that its product has no rounding.
  static PLEXAURA_INLINE double log10(double x) {
    const LogParts of(x);
    const double natural = 2. * of.s + of.tail;
    return of.unless_special(x, of.exponent * 0x1.34413508p-2 +
                                    (natural * 0.43429448190325183 + of.exponent * 0x1.f79fef311f12bp-34));
  }

  // log(1 + x) = log(s) * x / (s - 1), where s is 1 + x rounded to double.
  static PLEXAURA_INLINE double log1p(double x) {
    const double sum = 1. + x;
    const double rest = sum - 1.;
    double result = log(sum) * (x / rest);
    result = sum == infinity ? sum : result;
    return rest == 0. ? x : result;
  }

  // (e^2|x| - 1) / (e^2|x| + 1). Beyond 22 the result rounds to 1.
  static PLEXAURA_INLINE double tanh(double x) {
    const double size = abs(x);
    const double power = expm1(2. * (size > 22. ? 22. : size));
    return std::copysign(power / (power + 2.), x);
  }

  // With h = (e^|x| - 1) / 2 this is h + h / (2 h + 1). Below 2^-27 the result rounds to x, and above 709 to h.
  static PLEXAURA_INLINE double sinh(double x) {
    const double size = abs(x);
    const bool is_large = size > 709.;
    const Reduced of(size > 710.6 ? 710.6 : size);  // beyond, the result is infinite
    const double power = power_of_two(of.n - (is_large ? 2. : 1.));
    const double part = power * (of.r + of.r * of.r * of.tail()) + (power - 0.5);
    const double result = is_large ? 2. * part : part + part / (2. * part + 1.);
    return size < 0x1p-27 ? x : std::copysign(result, x);
  }

  // With h = e^|x| / 2 this is h + 1 / (4 h).
  static PLEXAURA_INLINE double cosh(double x) {
    const double size = abs(x);
    const double half = Reduced(size > 712. ? 712. : size).exponential(-1.);
    return half + 0.25 / half;
  }

  // log(|x| + sqrt(x^2 + 1)). Above 2^28 this rounds to log(2 |x|).
  static PLEXAURA_INLINE double asinh(double x) {
    const double size = abs(x);
    const bool is_large = size > 0x1p28;
    const double square = is_large ? 0. : size * size;
    const double above_1 = is_large ? size - 1. : size + square / (1. + sqrt(1. + square));
    const double result = log1p(above_1) + (is_large ? 0.69314718055994531 : 0.);
    return std::copysign(result, x);
  }

  static PLEXAURA_INLINE double atanh(double x) {
    const double size = abs(x);
    return std::copysign(0.5, x) * log1p(2. * size / (1. - size));
  }

  // sqrt(a^2 + b^2), which is exact where the sum of the squares is.
  static PLEXAURA_INLINE double hypot(double a, double b) {
    const double size_a = abs(a);
    const double size_b = abs(b);
    const double larger = size_a > size_b ? size_a : size_b;
    const double smaller = size_a > size_b ? size_b : size_a;
    const double scale = scale_for_squares(larger);
    const double scaled_larger = scale * larger;
    const double scaled_smaller = scale * smaller;
    const double length = sqrt(scaled_larger * scaled_larger + scaled_smaller * scaled_smaller) / scale;
    const bool is_infinite = (size_a == infinity) | (size_b == infinity);
    return is_infinite ? infinity : (((a != a) | (b != b)) ? a + b : length);
  }

  // Computes the angle of the absolute coordinates up to 45 degrees, and then moves it to the octant of (x, y). Above 22.5
  // degrees it is pi / 4 - atan((larger - smaller) / (larger + smaller)).
  static PLEXAURA_INLINE double atan2(double y, double x) {
    const double size_y = abs(y);
    const double size_x = abs(x);
    const bool is_steep = size_y > size_x;
    const double size = is_steep ? size_y : size_x;
    // Keeps the sum finite, and its products normal numbers.
    const double scale = size > 1e300 ? 0x1p-600 : (size < 1e-290 ? 0x1p600 : 1.);
    const double smaller = scale * (is_steep ? size_x : size_y);
    const double larger = scale * (is_steep ? size_y : size_x);
    const bool is_middle = smaller > 0.41421356237309505 * larger;
    const double above = is_middle ? larger - smaller : smaller;
    const double below = is_middle ? larger + smaller : larger;
    const double quotient = above / below;
    const bool is_diagonal = smaller == infinity;
    const double slope = (is_diagonal | (larger == 0.)) ? 0. : quotient;
    const double arc = arc_of(slope);
    const double low = (is_middle | is_diagonal) ? 0.78539816339744831 - (arc - 3.0616169978683829e-17) : arc;
    const double quarter = is_steep ? 1.5707963267948966 - (low - 6.1232339957367658e-17) : low;
    const double half =
        std::copysign(1., x) < 0. ? 3.1415926535897931 - (quarter - 1.2246467991473532e-16) : quarter;
    const double angle = std::copysign(half, y);
    return ((x != x) | (y != y)) ? x + y : angle;
  }

  static PLEXAURA_INLINE double atan(double x) { return atan2(x, 1.); }
  static PLEXAURA_INLINE double asin(double x) { return atan2(x, sqrt((1. - x) * (1. + x))); }
  static PLEXAURA_INLINE double acos(double x) { return atan2(sqrt((1. - x) * (1. + x)), x); }

 protected:
  static constexpr double infinity = std::bit_cast<double>(0x7ff0000000000000U);
  static constexpr double round = 0x1.8p52;  // adding it rounds to an integer

  // x = 2^exponent m with m in [sqrt(1/2), sqrt(2)), for x > 0.
  struct Scaled {
    double exponent;
    double m;

    PLEXAURA_INLINE explicit Scaled(double x) {
      constexpr std::uint64_t root_of_half = 0x3fe6a09e667f3bcdU;
      constexpr std::uint64_t fraction = 0x000fffffffffffffU;
      const bool is_small = x < 2.2250738585072014e-308;  // below the smallest normal number
      const double normal = is_small ? x * 0x1p54 : x;
      const std::uint64_t bits = std::bit_cast<std::uint64_t>(normal) - root_of_half + (1024ULL << 52);
      // The exponent + 1024 becomes the fraction of a double between 2^52 and 2^53.
      const double biased = std::bit_cast<double>((bits >> 52) | 0x4330000000000000U) - 0x1p52;
      exponent = biased - (is_small ? 1078. : 1024.);
      m = std::bit_cast<double>((bits & fraction) + root_of_half);
    }
  };

  // Returns (e^r - 1 - r) / r^2 for |r| <= log(2) / 2. The first omitted term is below 5e-18. The terms with even and with
  // odd powers are added up in two chains, which run side by side.
  static PLEXAURA_INLINE double exponential_tail(double r) {
    const double z = r * r;
    double even = 1. / 479001600;
    double odd = 1. / 6227020800;
    even = even * z + 1. / 3628800;
    odd = odd * z + 1. / 39916800;
    even = even * z + 1. / 40320;
    odd = odd * z + 1. / 362880;
    even = even * z + 1. / 720;
    odd = odd * z + 1. / 5040;
    even = even * z + 1. / 24;
    odd = odd * z + 1. / 120;
    even = even * z + 0.5;
    odd = odd * z + 1. / 6;
    return even + odd * r;
  }

  // `n` is a whole number from -1022 to 1023.
  static PLEXAURA_INLINE double power_of_two(double n) {
    return std::bit_cast<double>((std::bit_cast<std::uint64_t>(n + (round + 1023.))) << 52);
  }

 private:
  // Returns a power of two by which a number is multiplied before it is squared, so that a large square is finite and a
  // small one is a normal number.
  static PLEXAURA_INLINE double scale_for_squares(double size) {
    const double of_small = size < 1e-140 ? 0x1p600 : 1.;
    return size > 1e150 ? 0x1p-600 : of_small;
  }

  // log(2) in two parts, the first of which has 32 bits, so that its products with exponents have no rounding.
  static constexpr double log2_high = 0x1.62e42feep-1;
  static constexpr double log2_low = 0x1.a39ef35793c76p-33;

  // x = n log(2) + r with a whole number n and |r| <= log(2) / 2.
  struct Reduced {
    double n;
    double r;

    PLEXAURA_INLINE explicit Reduced(double x) {
      n = (x * 1.4426950408889634 + round) - round;
      r = (x - n * log2_high) - n * log2_low;
    }
    PLEXAURA_INLINE Reduced(double whole, double rest) : n(whole), r(rest) {}

    // Returns 2^(n + more) e^r. There are two factors, so that neither overflows or underflows before the result does.
    PLEXAURA_INLINE double exponential(double more) const {
      const double power = 1. + (r + r * r * tail());
      const double half = (n * 0.5 + round) - round;
      return power * power_of_two(half) * power_of_two((n - half) + more);
    }

    PLEXAURA_INLINE double tail() const { return exponential_tail(r); }
  };

  // The parts of log(x) for x = 2^e m with m in [sqrt(1/2), sqrt(2)): log(m) = 2 artanh(s) = 2 s + tail, where
  // s = (m - 1) / (m + 1). The first omitted term of the series is below 1e-18.
  struct LogParts {
    double exponent;
    double s;
    double tail;

    PLEXAURA_INLINE explicit LogParts(double x) {
      const Scaled of(x);
      exponent = of.exponent;
      s = (of.m - 1.) / (of.m + 1.);
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
      tail = s * z * sum;
    }

    // Returns the result, or the logarithm of infinity, of 0, or of a number below 0.
    PLEXAURA_INLINE double unless_special(double x, double result) const {
      result = x == infinity ? x : result;
      result = x == 0. ? -infinity : result;
      return x >= 0. ? result : std::bit_cast<double>(0x7ff8000000000000U);
    }
  };

  // atan(x) for |x| <= tan(pi / 8). The polynomial has the smallest possible maximum error.
  static PLEXAURA_INLINE double arc_of(double x) {
    const double z = x * x;
    double sum = -0.017920830973107076;
    sum = sum * z + 0.038077027183982974;
    sum = sum * z - 0.05039795791821095;
    sum = sum * z + 0.058479981663976374;
    sum = sum * z - 0.06663118948396649;
    sum = sum * z + 0.07692061514790155;
    sum = sum * z - 0.09090897829811753;
    sum = sum * z + 0.11111110785915981;
    sum = sum * z - 0.14285714280244263;
    sum = sum * z + 0.1999999999995404;
    sum = sum * z - 0.333333333333332;
    return x + x * z * sum;
  }
};

}  // namespace plexaura::fast
