#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/math/wide_math.h"
#include "core/loops/std_math.h"

namespace plexaura::fast {

// The functions of float32 that loops need, without branches or tables, so that the loops vectorise. Errors
// against the exact value, in units of the last place: exp 1.5, log 2, log2 and log10 3.5, log1p 3, tanh 3, sigmoid 3,
// erf 1.5, erfinv 4, hypot 1, atan2 and atan 3, asin and acos 4, exp2 1.5, expm1 2, atanh 5. Those of pow, erfc and lgamma
// stand at WideMath.
// Functions that are missing here come from the standard library, and compute one element at a time.
struct VectorMath : StdMath {
  static PLEXAURA_INLINE float abs(float x) { return std::fabs(x); }
  static PLEXAURA_INLINE float sqrt(float x) { return std::sqrt(x); }
  static PLEXAURA_INLINE float pow(float a, float b) { return WideMath::pow(a, b); }
  static PLEXAURA_INLINE float erfc(float x) { return WideMath::erfc(x); }
  static PLEXAURA_INLINE float lgamma(float x) { return WideMath::lgamma(x); }

  // e^x = 2^n e^r. There are two factors 2^n, so that neither overflows or underflows before the result does.
  static PLEXAURA_INLINE float exp(float x) {
    x = x > 89.F ? 89.F : x;
    x = x < -104.F ? -104.F : x;
    const Reduced of(x);
    const std::int32_t half = of.n >> 1;
    return of.exponential() * power_of_two(half) * power_of_two(of.n - half);
  }

  // 2^x = 2^n 2^r with |r| <= 1/2. The polynomial of 2^r has the smallest possible maximum error.
  static PLEXAURA_INLINE float exp2(float x) {
    x = x > 129.F ? 129.F : x;
    x = x < -151.F ? -151.F : x;
    constexpr float round = 12582912.F;  // see Reduced
    const float shifted = x + round;
    const std::int32_t n = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(round);
    const float r = x - (shifted - round);
    float sum = 1.53533605e-4F;
    sum = sum * r + 1.3398875e-3F;
    sum = sum * r + 9.61843692e-3F;
    sum = sum * r + 5.55033237e-2F;
    sum = sum * r + 2.40226477e-1F;
    sum = sum * r + 6.93147182e-1F;
    sum = sum * r + 1.F;
    const std::int32_t half = n >> 1;
    return sum * power_of_two(half) * power_of_two(n - half);
  }

  // e^x - 1 = 2^n (e^r - 1) + (2^n - 1), with n and r of Reduced. Above 88 half of it is computed and doubled, so that 2^n
  // is finite.
  static PLEXAURA_INLINE float expm1(float x) {
    float limited = x > 89.F ? 89.F : x;
    limited = limited < -40.F ? -40.F : limited;
    const Reduced of(limited);
    const float r = of.r;
    float sum = 1.9845886e-4F;
    sum = sum * r + 1.39407441e-3F;
    sum = sum * r + 8.33338965e-3F;
    sum = sum * r + 4.16663587e-2F;
    sum = sum * r + 1.66666657e-1F;
    sum = sum * r + 0.5F;
    const bool is_halved = limited > 88.F;
    const float power = power_of_two(of.n - (is_halved ? 1 : 0));
    const float part = power * (r + r * r * sum) + (power - 1.F);
    const float result = std::copysign(is_halved ? 2.F * part : part, x);
    return x != x ? x : result;
  }

  static PLEXAURA_INLINE float log(float x) {
    const LogParts of(x);
    return of.unless_special(
        x, of.exponent * 0.693359375F + (2.F * of.s + (of.s * of.tail - of.exponent * 2.12194440e-4F)));
  }

  static PLEXAURA_INLINE float log2(float x) {
    const LogParts of(x);
    const float natural = 2.F * of.s + of.s * of.tail;
    return of.unless_special(x, of.exponent + natural * 1.44269504F);
  }

  // The first part of log10(2) has 10 bits, so that its product has no rounding.
  static PLEXAURA_INLINE float log10(float x) {
    const LogParts of(x);
    const float natural = 2.F * of.s + of.s * of.tail;
    return of.unless_special(
        x, of.exponent * 0.301025391F + (natural * 0.434294482F + of.exponent * 4.60503898e-6F));
  }

  static PLEXAURA_INLINE float atanh(float x) {
    const float size = abs(x);
    return std::copysign(0.5F, x) * log1p(2.F * size / (1.F - size));
  }

  // log(1 + x) = log(s) * x / (s - 1), where s is 1 + x rounded to float.
  static PLEXAURA_INLINE float log1p(float x) {
    const float sum = 1.F + x;
    const float rest = sum - 1.F;
    const float exact = log(sum);
    float result = exact * (x / rest);
    result = sum == std::bit_cast<float>(0x7f800000) ? sum : result;
    return rest == 0.F ? x : result;
  }

  // Near 0 computes x + x p(x^2), elsewhere 1 - e^-p(|x|). The polynomials p have the smallest possible
  // maximum error. Beyond 4 the result rounds to 1.
  static PLEXAURA_INLINE float erf(float x) {
    const float z = x * x;
    float sum = 8.51324801e-5F;
    sum = sum * z - 8.17567740e-4F;
    sum = sum * z + 5.20386304e-3F;
    sum = sum * z - 2.68605104e-2F;
    sum = sum * z + 1.12837151e-1F;
    sum = sum * z - 3.76126350e-1F;
    sum = sum * z + 1.28379166e-1F;
    const float near = x + x * sum;
    const float size = abs(x);
    const float t = size > 4.F ? 4.F : size;
    float power = -1.98322195e-4F;
    power = power * t + 3.06648517e-3F;
    power = power * t - 2.23191327e-2F;
    power = power * t + 1.04121709e-1F;
    power = power * t + 6.36967053e-1F;
    power = power * t + 1.12780253F;
    power = power * t + 1.65186360e-4F;
    const float far = std::copysign(1.F - exp_of_normal(-power), x);
    return size < 0.9F ? near : far;
  }

  // With w = -log(1 - x^2) computes x p(w) for |x| < 0.9966, elsewhere x q(sqrt(w)). The polynomials p and q have the
  // smallest possible maximum error.
  static PLEXAURA_INLINE float erfinv(float x) {
    const float w = -log((1.F - x) * (1.F + x));
    const float t = w - 2.5F;
    float near = -8.79105677e-9F;
    near = near * t + 2.32326443e-8F;
    near = near * t + 4.66170668e-7F;
    near = near * t - 3.46270485e-6F;
    near = near * t - 4.96334769e-6F;
    near = near * t + 2.18344445e-4F;
    near = near * t - 1.2527419e-3F;
    near = near * t - 4.17738687e-3F;
    near = near * t + 2.4664028e-1F;
    near = near * t + 1.50140941F;
    const float s = sqrt(w < 17.F ? w : 17.F) - 3.F;
    float far = 1.16713421e-4F;
    far = far * s - 3.10426345e-4F;
    far = far * s - 5.82609828e-5F;
    far = far * s + 1.48613076e-3F;
    far = far * s - 3.59662341e-3F;
    far = far * s + 5.68658998e-3F;
    far = far * s - 7.63745280e-3F;
    far = far * s + 9.44532920e-3F;
    far = far * s + 1.00167501F;
    far = far * s + 2.83297682F;
    const float result = x * (w < 5.F ? near : far);
    const float limit = std::copysign(std::bit_cast<float>(0x7f800000), x);
    return abs(x) < 1.F ? result : (abs(x) == 1.F ? limit : std::bit_cast<float>(0x7fc00000));
  }

  // The squares have no rounding in double, and cannot overflow.
  static PLEXAURA_INLINE float hypot(float a, float b) {
    const double wide_a = a;
    const double wide_b = b;
    const auto length = static_cast<float>(std::sqrt(wide_a * wide_a + wide_b * wide_b));
    const float infinity = std::bit_cast<float>(0x7f800000);
    const bool a_is_infinite = abs(a) == infinity;
    const bool b_is_infinite = abs(b) == infinity;
    return (a_is_infinite | b_is_infinite) ? infinity : length;
  }

  // Computes the angle atan(smaller / larger) of the absolute coordinates by a minimax polynomial, and then moves it to
  // the octant of (x, y).
  static PLEXAURA_INLINE float atan2(float y, float x) {
    const float size_y = abs(y);
    const float size_x = abs(x);
    const bool is_steep = size_y > size_x;
    const float smaller = is_steep ? size_x : size_y;
    const float larger = is_steep ? size_y : size_x;
    const float infinity = std::bit_cast<float>(0x7f800000);
    const float slope = larger == 0.F ? 0.F : (smaller == infinity ? 1.F : smaller / larger);
    const float z = slope * slope;
    float sum = -1.79360656e-3F;
    sum = sum * z + 1.09145381e-2F;
    sum = sum * z - 3.11777182e-2F;
    sum = sum * z + 5.79574667e-2F;
    sum = sum * z - 8.4034428e-2F;
    sum = sum * z + 1.09521829e-1F;
    sum = sum * z - 1.42642409e-1F;
    sum = sum * z + 1.99985489e-1F;
    sum = sum * z - 3.33332986e-1F;
    const float low = slope + slope * z * sum;
    const float quarter = is_steep ? 1.57079633F - low : low;
    const float half = std::bit_cast<std::int32_t>(x) < 0 ? 3.14159265F - quarter : quarter;
    const float angle = std::copysign(half, y);
    return ((x != x) | (y != y)) ? x + y : angle;
  }

  static PLEXAURA_INLINE float atan(float x) { return atan2(x, 1.F); }
  static PLEXAURA_INLINE float asin(float x) { return atan2(x, sqrt((1.F - x) * (1.F + x))); }
  static PLEXAURA_INLINE float acos(float x) { return atan2(sqrt((1.F - x) * (1.F + x)), x); }

  // Uses the series near 0, and e^-2|x| elsewhere.
  static PLEXAURA_INLINE float tanh(float x) {
    const float z = x * x;
    float sum = -1.45583438e-3F;
    sum = sum * z + 3.59212803e-3F;
    sum = sum * z - 8.86323553e-3F;
    sum = sum * z + 2.18694885e-2F;
    sum = sum * z - 5.39682540e-2F;
    sum = sum * z + 1.33333333e-1F;
    sum = sum * z - 3.33333333e-1F;
    const float near = x + x * z * sum;
    const float size = abs(x);
    const float e = exp(-2.F * size);
    const float far = std::copysign((1.F - e) / (1.F + e), x);
    return size < 0.5F ? near : far;
  }

 private:
  // x = n log(2) + r with a whole number n and |r| <= log(2) / 2.
  struct Reduced {
    std::int32_t n;
    float r;

    PLEXAURA_INLINE explicit Reduced(float x) {
      constexpr float round = 12582912.F;  // 1.5 x 2^23: adding it rounds to an integer
      const float shifted = x * 1.44269504F + round;
      n = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(round);
      const float whole = shifted - round;
      r = (x - whole * 0.693359375F) + whole * 2.12194440e-4F;
    }

    // Returns e^r, computed by its series; the first omitted term is below 6e-9.
    PLEXAURA_INLINE float exponential() const {
      float sum = 1.98412698e-4F;
      sum = sum * r + 1.38888889e-3F;
      sum = sum * r + 8.33333333e-3F;
      sum = sum * r + 4.16666667e-2F;
      sum = sum * r + 1.66666667e-1F;
      sum = sum * r + 0.5F;
      return sum * (r * r) + r + 1.F;
    }
  };

  // exp() of a number from -87 to 88, or of NaN: the result is a normal number.
  static PLEXAURA_INLINE float exp_of_normal(float x) {
    const Reduced of(x);
    return of.exponential() * power_of_two(of.n);
  }

  // The parts of log(x) for x = 2^e m with m in [sqrt(1/2), sqrt(2)): log(m) = 2 artanh(s) = 2 s + s tail, where
  // s = (m - 1) / (m + 1).
  struct LogParts {
    float exponent;
    float s;
    float tail;
    float normal;

    PLEXAURA_INLINE explicit LogParts(float x) {
      const bool is_small = x < 1.17549435e-38F;  // below the smallest normal number
      normal = is_small ? x * 0x1p23F : x;
      // The difference wraps around if x < 0.
      const auto bits = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(normal) - 0x3f3504f3U);
      exponent = static_cast<float>((bits >> 23) - (is_small ? 23 : 0));
      const float m = std::bit_cast<float>((bits & 0x007fffff) + 0x3f3504f3);
      s = (m - 1.F) / (m + 1.F);
      const float z = s * s;
      tail = z * (0.666666667F + z * (0.4F + z * (0.285714286F + z * 0.222222222F)));
    }

    // Returns the result, or the logarithm of infinity, of 0, or of a number below 0.
    PLEXAURA_INLINE float unless_special(float x, float result) const {
      result = x == std::bit_cast<float>(0x7f800000) ? x : result;
      result = normal == 0.F ? std::bit_cast<float>(0xff800000) : result;
      return x >= 0.F ? result : std::bit_cast<float>(0x7fc00000);
    }
  };

  static PLEXAURA_INLINE float power_of_two(std::int32_t n) { return std::bit_cast<float>((n + 127) << 23); }
};

}  // namespace plexaura::fast
