#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/math/double_math.h"
#include "backends/cpu/fast/math/double_special.h"

namespace plexaura::fast {

// Functions of float32 that are computed in double, without branches or tables, so that the loops vectorise. Every result
// is within 0.51 units of the last place of the exact value. Special values are those of the C library; those of digamma
// and trigamma stand in double_special.h.
struct WideMath {
  // |a|^b = 2^(b log2(|a|)), with the sign of a if b is odd.
  static PLEXAURA_INLINE float pow(float a, float b) {
    const double wide_b = b;
    const double size = std::fabs(static_cast<double>(a));
    const double power = exp2(wide_b * log2(size));
    const bool is_whole = DoubleSpecial::rounded(wide_b) == wide_b;
    const bool is_odd = is_whole & (DoubleSpecial::rounded(0.5 * wide_b) != 0.5 * wide_b);
    const bool is_below_0 = (a < 0.F) & (size != infinity);
    const bool is_one = (b == 0.F) | (a == 1.F) | ((size == 1.) & (std::fabs(wide_b) == infinity));
    double result = is_odd ? std::copysign(power, static_cast<double>(a)) : power;
    result = (is_below_0 & !is_whole & (b == b)) ? not_a_number : result;
    return static_cast<float>(is_one ? 1. : result);
  }

  // For x >= 0 this is t p(t) e^(-x^2) with t = 2 / (2 + x), for x < 0 it is 2 - erfc(-x). The relative error of p is
  // below 4e-10.
  static PLEXAURA_INLINE float erfc(float x) {
    const double size = std::fabs(static_cast<double>(x));
    const double limited = size > 11. ? 11. : size;  // beyond, the result is 0
    const double t = 2. / (2. + limited);
    double sum = -0.007017936147450657;
    sum = sum * t + 0.01858136852482937;
    sum = sum * t + 0.07412624475664463;
    sum = sum * t - 0.4416775445971659;
    sum = sum * t + 0.904450864480405;
    sum = sum * t - 0.9107470903331238;
    sum = sum * t + 0.45300268486892853;
    sum = sum * t - 0.20863889634856456;
    sum = sum * t + 0.13984464739528593;
    sum = sum * t + 0.165887710971314;
    sum = sum * t + 0.24808282454286898;
    sum = sum * t + 0.28200765519148197;
    sum = sum * t + 0.2820974666186808;
    const double tail = t * sum * exp2(limited * limited * -1.4426950408889634);
    return static_cast<float>(x < 0.F ? 2. - tail : tail);
  }

  // Below 2.5 this is w q(w) - log(p), where w is the distance to 0, 1 or 2, and p = x (x + 1), x or 1. Above it is
  // Stirling's series at z = x + 6, less the logarithm of x (x + 1) ... (x + 5); from 8 on it is the series at x. Negative
  // numbers are reflected: log(pi / |x sin(pi x)|) - lgamma(|x|).
  static PLEXAURA_INLINE float lgamma(float x) {
    double limited = x;
    limited = limited > 1e60 ? 1e60 : limited;  // beyond, the result is infinite
    limited = limited < -1e60 ? -1e60 : limited;
    const double size = std::fabs(limited);
    const double w = size - ((size < 0.5 ? 0. : 1.) + (size < 1.5 ? 0. : 1.));
    const double small_product = (size < 0.5 ? size + 1. : 1.) * (size < 1.5 ? size : 1.);
    const double all = size * (size + 1.) * (size + 2.) * (size + 3.) * (size + 4.) * (size + 5.);
    const double shifted = size + (size < 8. ? 6. : 0.);
    const double large_product = size < 8. ? all : 1.;
    const double stirling =
        (shifted - 0.5) * DoubleMath::log(shifted) - shifted + (0.91893853320467274 + stirling_rest(shifted));
    const bool is_small = size < 2.5;
    const double main = is_small ? w * near_2(w) : stirling;
    const double product = is_small ? small_product : large_product;
    const double sine = std::fabs(DoubleSpecial::sine_of_turns(limited - DoubleSpecial::rounded(limited)));
    const double reflected = 3.14159265358979324 / (size * sine);
    const double sign = x < 0.F ? -1. : 1.;
    const double factor = sign < 0. ? reflected : 1.;
    return static_cast<float>(sign * (main - DoubleMath::log(product * factor)));
  }

  static PLEXAURA_INLINE float digamma(float x) { return static_cast<float>(DoubleSpecial::digamma(x)); }
  static PLEXAURA_INLINE float trigamma(float x) { return static_cast<float>(DoubleSpecial::trigamma(x)); }

 private:
  static constexpr double infinity = std::bit_cast<double>(0x7ff0000000000000U);
  static constexpr double not_a_number = std::bit_cast<double>(0x7ff8000000000000U);

  // log2(x) of a float x >= 0, with a relative error of 5e-12: e + 2 artanh(s) / log(2), where x = 2^e m with m in
  // [sqrt(1/2), sqrt(2)) and s = (m - 1) / (m + 1). All floats but 0 are normal numbers in double.
  static PLEXAURA_INLINE double log2(double x) {
    constexpr std::uint64_t root_of_half = 0x3fe6a09e667f3bcdU;
    constexpr std::uint64_t fraction = 0x000fffffffffffffU;
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) - root_of_half + (1024ULL << 52);
    // The exponent + 1024 becomes the fraction of a double between 2^52 and 2^53.
    const double exponent = std::bit_cast<double>((bits >> 52) | 0x4330000000000000U) - (0x1p52 + 1024.);
    const double m = std::bit_cast<double>((bits & fraction) + root_of_half);
    const double s = (m - 1.) / (m + 1.);
    const double z = s * s;
    double sum = 0.3407120415619086;
    sum = sum * z + 0.41167376623771057;
    sum = sum * z + 0.5770835660048659;
    sum = sum * z + 0.9617966734515485;
    sum = sum * z + 2.885390081789987;
    double result = exponent + s * sum;
    result = x == 0. ? -infinity : result;
    return x < infinity ? result : x;
  }

  // 2^x = 2^n 2^r with |r| <= 1/2, with a relative error of 6e-11. Beyond 300 the result is far outside of the range of
  // float.
  static PLEXAURA_INLINE double exp2(double x) {
    x = x > 300. ? 300. : x;
    x = x < -300. ? -300. : x;
    constexpr double round = 0x1.8p52;
    const double n = (x + round) - round;
    const double r = x - n;
    double sum = 1.5303700711365693e-05;
    sum = sum * r + 0.00015469729214118296;
    sum = sum * r + 0.0013333478473685416;
    sum = sum * r + 0.009618025613318034;
    sum = sum * r + 0.055504109063258665;
    sum = sum * r + 0.24022651213498092;
    sum = sum * r + 0.6931471805568324;
    sum = sum * r + 0.9999999999595618;
    return sum * std::bit_cast<double>(std::bit_cast<std::uint64_t>(n + (round + 1023.)) << 52);
  }

  // lgamma(2 + w) / w for |w| <= 1/2, with a relative error of 2e-15.
  static PLEXAURA_INLINE double near_2(double w) {
    double sum = 1.1987899414920579e-06;
    sum = sum * w - 2.554914527462414e-06;
    sum = sum * w + 4.271453571823135e-06;
    sum = sum * w - 9.220663323909058e-06;
    sum = sum * w + 2.052955658697094e-05;
    sum = sum * w - 4.4973510999689744e-05;
    sum = sum * w + 9.94548626571654e-05;
    sum = sum * w - 0.00022314915180241202;
    sum = sum * w + 0.0005096696946223285;
    sum = sum * w - 0.001192754271087742;
    sum = sum * w + 0.002890510325409574;
    sum = sum * w - 0.00738555101739438;
    sum = sum * w + 0.020580808427848166;
    sum = sum * w - 0.06735230105333267;
    sum = sum * w + 0.3224670334241131;
    return sum * w + 0.4227843350984674;
  }

  // The terms of Stirling's series that fall with z. The first omitted one is below 2e-15 for z >= 8.
  static PLEXAURA_INLINE double stirling_rest(double z) {
    const double inverse = 1. / z;
    const double square = inverse * inverse;
    double sum = 1. / 156;
    sum = sum * square - 691. / 360360;
    sum = sum * square + 1. / 1188;
    sum = sum * square - 1. / 1680;
    sum = sum * square + 1. / 1260;
    sum = sum * square - 1. / 360;
    sum = sum * square + 1. / 12;
    return sum * inverse;
  }
};

}  // namespace plexaura::fast
