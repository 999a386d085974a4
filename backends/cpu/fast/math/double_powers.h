#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/math/double_math.h"
#include "backends/cpu/fast/math/double_special.h"

namespace plexaura::fast {

// Powers of float64, without branches or tables, so that loops vectorise. Special values are those of the C library.
struct DoublePowers : DoubleMath {
  // |a|^b = 2^(b log2(|a|)), with the sign of a if b is odd. The error is below 2 units of the last place: the logarithm
  // and its product with b are sums of two doubles, of which the first one has few bits where it is a factor.
  static PLEXAURA_INLINE double pow(double a, double b) {
    const double size = abs(a);
    const double size_b = abs(b);
    const double limited =
        size_b > 0x1p70 ? std::copysign(0x1p70, b) : b;  // beyond, all results are the same
    const double power = power_of(product(limited, logarithm_of(size)));
    const bool is_at_end = (size == 0.) | (size == infinity);
    const bool is_whole = DoubleSpecial::rounded(b) == b;
    const bool is_odd = is_whole & (DoubleSpecial::rounded(0.5 * b) != 0.5 * b);
    const bool is_below_0 = (a < 0.) & (size != infinity);
    const bool is_undefined = (is_below_0 & !is_whole) | (a != a) | (b != b);
    const bool is_one = (b == 0.) | (a == 1.) | ((size == 1.) & (size_b == infinity));
    const double end = (size == 0.) == (b > 0.) ? 0. : infinity;
    const double unsigned_result = is_at_end ? end : power;
    const double result = is_odd ? std::copysign(unsigned_result, a) : unsigned_result;
    const double defined = is_undefined ? std::bit_cast<double>(0x7ff8000000000000U) : result;
    return is_one ? 1. : defined;
  }

 private:
  struct Sum {
    double high;
    double low;
  };

  // Returns the first 21 bits, so that a product of two heads has no rounding.
  static PLEXAURA_INLINE double head(double x) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0xffffffff00000000U);
  }

  // Returns log2(x) for x = 2^e m: log(m) = 2 artanh(s) = 2/3 s t with s = (m - 1) / (m + 1) and t = 3 + s^2 + 3/5 s^4 + 3/7 s^6 + ... The
  // first omitted term is below 2e-21. The terms from s^4 on are added up in two chains that run side by side.
  static PLEXAURA_INLINE Sum logarithm_of(double x) {
    const Scaled of(x);
    const double above = of.m - 1.;
    const double below = of.m + 1.;
    const double s = above / below;
    const double s_high = head(s);
    const double below_high = head(below);
    const double below_low = of.m - (below_high - 1.);
    const double s_low = ((above - s_high * below_high) - s_high * below_low) / below;
    const double z = s * s;
    const double w = z * z;
    double even = 3. / 25;
    double odd = 3. / 23;
    even = even * w + 3. / 21;
    odd = odd * w + 3. / 19;
    even = even * w + 3. / 17;
    odd = odd * w + 3. / 15;
    even = even * w + 3. / 13;
    odd = odd * w + 3. / 11;
    even = even * w + 3. / 9;
    odd = odd * w + 3. / 7;
    even = even * w + 3. / 5;
    const double z_high = s_high * s_high;
    const double rest = w * (even + odd * z) + s_low * (s_high + s);
    const double t_high = head(3. + z_high + rest);
    const double t_low = rest - ((t_high - 3.) - z_high);
    const double large = s_high * t_high;
    const double small = s_low * t_high + t_low * s;
    const double high = head(large + small);
    const double low = small - (high - large);
    // 2 / (3 log(2)) = 0x1.ec709p-1 + 4.1e-7
    const double whole = 0x1.ec709p-1 * high;
    const double part = 4.102040517767816e-07 * high + 0.96179669392597556 * low;
    const double result = head((whole + part) + of.exponent);
    return {result, part - ((result - of.exponent) - whole)};
  }

  static PLEXAURA_INLINE Sum product(double b, const Sum& of) {
    const double b_high = head(b);
    return {b_high * of.high, (b - b_high) * of.high + b * of.low};
  }

  // Returns 2^x = 2^n e^r with a whole number n and |r| <= log(2) / 2. There are two factors of 2^n, so that
  // neither overflows or underflows before the result does.
  static PLEXAURA_INLINE double power_of(const Sum& x) {
    const double total = x.high + x.low;
    const bool is_large = abs(total) > 1100.;  // beyond the range of results
    const double high = is_large ? std::copysign(1100., total) : x.high;
    const double low = is_large ? 0. : x.low;
    const double n = ((high + low) + round) - round;
    const double rest = high - n;
    const double first = head(rest + low);
    // log(2) = 0x1.62e42p-1 + 4.7e-7
    const double whole = 0x1.62e42p-1 * first;
    const double part = 0.69314718055994531 * (low - (first - rest)) + 4.7493250390316726e-07 * first;
    const double r = whole + part;
    const double r_low = part - (r - whole);
    const double power = 1. + (r + (r_low + r * r * exponential_tail(r)));
    const double half = (n * 0.5 + round) - round;
    return power * power_of_two(half) * power_of_two(n - half);
  }
};

}  // namespace plexaura::fast
