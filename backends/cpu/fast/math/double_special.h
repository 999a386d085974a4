#pragma once

#include <bit>
#include <cmath>

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/math/double_math.h"

namespace plexaura::fast {

// Special functions of float64, without branches or tables, so that loops vectorise.
struct DoubleSpecial {
  // The x with erf(x) = y, with an error of 3 units of the last place; the largest of 60 million values was 2.5. Up to
  // 0.85 the result is y (c + y^2 M) with c = sqrt(pi) / 2, above it is root - D with the root of -log(1 - |y|). M and D are
  // rational functions of r, fitted to 0.15 units. y^2 M is at most a quarter of the factor, and D a third of the root, so
  // that their rounding errors count only in part.
  static PLEXAURA_INLINE double erfinv(double y) {
    const double size = std::fabs(y);
    const bool is_middle = size <= 0.85;
    const double root = std::sqrt(-DoubleMath::log(is_middle ? 0.5 : 1. - size));
    const double square = y * y;
    const double r = is_middle ? 0.7225 - square : root - 1.375;
    const auto choose = [=](double middle, double tail) { return is_middle ? middle : tail; };
    double above = choose(0., 1.53259315809959e-08);
    above = above * r + choose(0.0030603550175527677, 1.5779485662814864e-05);
    above = above * r + choose(0.7872823786044721, 0.000859094578600806);
    above = above * r + choose(7.408433556853096, 0.014589418330054529);
    above = above * r + choose(21.413583158761192, 0.1094586201768898);
    above = above * r + choose(26.339159250709603, 0.41393847050101845);
    above = above * r + choose(15.377747094902691, 0.8301109540897871);
    above = above * r + choose(4.199815045570208, 0.8567855086763814);
    above = above * r + choose(0.43087250673264127, 0.35953272557018406);
    double below = choose(0., 5.421131317089894e-06);
    below = below * r + choose(1.2092813412288972, 0.0004174481192029228);
    below = below * r + choose(16.491258735242823, 0.009508879693403615);
    below = below * r + choose(67.91157205462065, 0.09633455305649048);
    below = below * r + choose(121.08537636996488, 0.510887846946379);
    below = below * r + choose(107.40232335371186, 1.5278660852346904);
    below = below * r + choose(49.419403916017274, 2.6325642396969604);
    below = below * r + choose(11.253313219601782, 2.4716807348458034);
    below = below * r + 1.;
    const double quotient = above / below;
    const double result =
        is_middle ? y * (0.88622692545275801 + square * quotient) : std::copysign(root - quotient, y);
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
