#pragma once

#include <bit>
#include <cmath>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/math/double_math.h"

namespace plexaura::fast {

// Special functions of float64, without branches or tables, so that loops vectorise.
struct DoubleSpecial {
  // The x with erf(x) = y, with an error of 6 units of the last place: x = z / sqrt(2) for the quantile z of the normal
  // distribution, by the rational functions of M. J. Wichura, Algorithm AS 241, Applied Statistics 37 (1988). There is one
  // for the middle and two for the tails, in r, the root of -log((1 - |y|) / 2).
  static PLEXAURA_INLINE double erfinv(double y) {
    const double size = std::fabs(y);
    const bool is_middle = size <= 0.85;
    const double root = std::sqrt(-DoubleMath::log(is_middle ? 0.5 : 0.5 * (1. - size)));
    const bool is_far = root > 5.;
    const double of_tail = root - (is_far ? 5. : 1.6);
    const double r = is_middle ? 0.180625 - 0.25 * y * y : of_tail;
    const auto choose = [=](double middle, double near, double far) {
      const double tail = is_far ? far : near;
      return is_middle ? middle : tail;
    };
    double above = choose(2.5090809287301226727e+3, 7.74545014278341407640e-4, 2.01033439929228813265e-7);
    above =
        above * r + choose(3.3430575583588128105e+4, 2.27238449892691845833e-2, 2.71155556874348757815e-5);
    above =
        above * r + choose(6.7265770927008700853e+4, 2.41780725177450611770e-1, 1.24266094738807843860e-3);
    above = above * r + choose(4.5921953931549871457e+4, 1.27045825245236838258e0, 2.65321895265761230930e-2);
    above = above * r + choose(1.3731693765509461125e+4, 3.64784832476320460504e0, 2.96560571828504891230e-1);
    above = above * r + choose(1.9715909503065514427e+3, 5.76949722146069140550e0, 1.78482653991729133580e0);
    above = above * r + choose(1.3314166789178437745e+2, 4.63033784615654529590e0, 5.46378491116411436990e0);
    above = above * r + choose(3.3871328727963666080e0, 1.42343711074968357734e0, 6.65790464350110377720e0);
    double below = choose(5.2264952788528545610e+3, 1.05075007164441684324e-9, 2.04426310338993978564e-15);
    below =
        below * r + choose(2.8729085735721942674e+4, 5.47593808499534494600e-4, 1.42151175831644588870e-7);
    below =
        below * r + choose(3.9307895800092710610e+4, 1.51986665636164571966e-2, 1.84631831751005468180e-5);
    below =
        below * r + choose(2.1213794301586595867e+4, 1.48103976427480074590e-1, 7.86869131145613259100e-4);
    below =
        below * r + choose(5.3941960214247511077e+3, 6.89767334985100004550e-1, 1.48753612908506148525e-2);
    below = below * r + choose(6.8718700749205790830e+2, 1.67638483018380384940e0, 1.36929880922735805310e-1);
    below = below * r + choose(4.2313330701600911252e+1, 2.05319162663775882187e0, 5.99832206555887937690e-1);
    below = below * r + 1.;
    const double quotient = above / below * 0.70710678118654752;
    const double result = is_middle ? y * (0.5 * quotient) : std::copysign(quotient, y);
    return size == 1. ? y * infinity : result;
  }

  // The derivative of the logarithm of the gamma function. The error is below 4e-15 of the larger one of 1 and the result.
  // At 0 it is minus infinity, at -0 infinity, and at other whole numbers below 0 NaN. Below 10 the
  // asymptotic series is taken at x + 10; negative numbers are reflected: digamma(1 - x) - pi / tan(pi x).
  static PLEXAURA_INLINE double digamma(double x) {
    const double positive = x < 0. ? 1. - x : x;
    // Adds up numerator / denominator = 1 / x + 1 / (x + 1) + ... + 1 / (x + 9).
    double numerator = 1.;
    double denominator = positive;
    for (int k = 1; k < shift; ++k) {
      numerator = numerator * (positive + k) + denominator;
      denominator = denominator * (positive + k);
    }
    const bool is_large = positive >= shift;
    const double z = is_large ? positive : positive + shift;
    const double sum = is_large ? 0. : numerator / denominator;
    const double inverse = 1. / z;
    const double square = inverse * inverse;
    double tail = 1. / 12;
    tail = tail * square - 691. / 32760;
    tail = tail * square + 1. / 132;
    tail = tail * square - 1. / 240;
    tail = tail * square + 1. / 252;
    tail = tail * square - 1. / 120;
    tail = tail * square + 1. / 12;
    const double result = DoubleMath::log(z) - 0.5 * inverse - tail * square - sum;
    const double rest = x - rounded(x);
    const double cotangent = cosine_of_turns(rest) / sine_of_turns(rest);
    const double reflected = rest == 0. ? not_a_number : result - 3.14159265358979324 * cotangent;
    return x < 0. ? reflected : result;
  }

  // The derivative of digamma: infinite at 0 and at whole numbers below. Computed like digamma; the reflection is
  // (pi / sin(pi x))^2 - trigamma(1 - x).
  static PLEXAURA_INLINE double trigamma(double x) {
    const double positive = x < 0. ? 1. - x : x;
    double numerator = 1.;
    double denominator = positive * positive;
    for (int k = 1; k < shift; ++k) {
      const double square = (positive + k) * (positive + k);
      numerator = numerator * square + denominator;
      denominator = denominator * square;
    }
    const bool is_large = positive >= shift;
    const double z = is_large ? positive : positive + shift;
    const double sum = is_large ? 0. : numerator / denominator;
    const double inverse = 1. / z;
    const double square = inverse * inverse;
    double tail = -3617. / 510;
    tail = tail * square + 7. / 6;
    tail = tail * square - 691. / 2730;
    tail = tail * square + 5. / 66;
    tail = tail * square - 1. / 30;
    tail = tail * square + 1. / 42;
    tail = tail * square - 1. / 30;
    tail = tail * square + 1. / 6;
    const double result = sum + (inverse + square * (0.5 + inverse * tail));
    const double factor = 3.14159265358979324 / sine_of_turns(x - rounded(x));
    return x < 0. ? factor * factor - result : result;
  }

  // Returns the nearest whole number, the even one of two. From 2^52 to 2^53 neighbouring numbers differ by 1, so a sum in
  // this range is whole. Larger numbers are whole, and stay as they are.
  static PLEXAURA_INLINE double rounded(double x) {
    const double size = std::fabs(x);
    const double whole = (size + 0x1p52) - 0x1p52;
    return std::copysign(size < 0x1p52 ? whole : size, x);
  }

  // sin(pi x) and cos(pi x) for |x| <= 1/2.
  static PLEXAURA_INLINE double sine_of_turns(double x) {
    const double z = x * x;
    double sum = 7.697826768224191e-07;
    sum = sum * z - 2.1903497074626018e-05;
    sum = sum * z + 0.0004662998161898394;
    sum = sum * z - 0.007370430505916944;
    sum = sum * z + 0.0821458865731029;
    sum = sum * z - 0.5992645293189447;
    sum = sum * z + 2.5501640398773007;
    sum = sum * z - 5.167712780049969;
    sum = sum * z + 3.141592653589793;
    return x * sum;
  }
  static PLEXAURA_INLINE double cosine_of_turns(double x) { return sine_of_turns(0.5 - std::fabs(x)); }

 private:
  static constexpr int shift = 10;
  static constexpr double infinity = std::bit_cast<double>(0x7ff0000000000000U);
  static constexpr double not_a_number = std::bit_cast<double>(0x7ff8000000000000U);
};

}  // namespace plexaura::fast
