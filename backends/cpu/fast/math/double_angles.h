#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "backends/cpu/fast/math/double_math.h"

namespace plexaura::fast {

// Trigonometry of float64 for |x| < largest_angle, without branches or tables, so that the loops vectorise. Errors in units
// of the last place: sin and cos 2, tan 4.
struct DoubleAngles : DoubleMath {
  static constexpr double largest_angle = 0x1p20;

  static PLEXAURA_INLINE double sin(double x) {
    const double y = Turned(x).sine(0);
    return x == 0. ? x : y;
  }
  static PLEXAURA_INLINE double cos(double x) { return Turned(x).sine(1); }
  static PLEXAURA_INLINE double tan(double x) {
    const Turned angle(x);
    const double y = angle.sine(0) / angle.sine(1);
    return x == 0. ? x : y;
  }

 private:
  // x less the multiple of pi / 2 that is nearest to it. pi / 2 is the sum of three numbers. The products with the first
  // two have no rounding, and neither has the first difference; the rounding of the second one is added to the rest.
  struct Turned {
    std::uint64_t quarters;
    double sine_of_rest;
    double cosine_of_rest;

    PLEXAURA_INLINE explicit Turned(double x) {
      constexpr double round = 0x1.8p52;  // adding it rounds to an integer
      const double shifted = x * 0.63661977236758138 + round;
      quarters = std::bit_cast<std::uint64_t>(shifted);
      const double turns = shifted - round;
      const double first = x - turns * 0x1.921fb544p+0;
      const double product = turns * 0x1.0b4611a6p-34;
      const double second = first - product;
      const double lost = (first - second) - product;
      const double rest = second + (lost - turns * 0x1.3198a2e037073p-69);
      const double z = rest * rest;
      // The series; the first omitted terms are below 1e-19 and 3e-18.
      double sum = 1. / 355687428096000;
      sum = sum * z - 1. / 1307674368000;
      sum = sum * z + 1. / 6227020800;
      sum = sum * z - 1. / 39916800;
      sum = sum * z + 1. / 362880;
      sum = sum * z - 1. / 5040;
      sum = sum * z + 1. / 120;
      sum = sum * z - 1. / 6;
      sine_of_rest = rest + rest * z * sum;
      sum = 1. / 20922789888000;
      sum = sum * z - 1. / 87178291200;
      sum = sum * z + 1. / 479001600;
      sum = sum * z - 1. / 3628800;
      sum = sum * z + 1. / 40320;
      sum = sum * z - 1. / 720;
      sum = sum * z + 1. / 24;
      cosine_of_rest = (1. - 0.5 * z) + z * z * sum;
    }

    // Returns the sine of the angle after some more quarter turns.
    PLEXAURA_INLINE double sine(std::uint64_t more) const {
      const std::uint64_t all = quarters + more;
      const double size = (all & 1U) == 0 ? sine_of_rest : cosine_of_rest;
      return (all & 2U) == 0 ? size : -size;
    }
  };
};

}  // namespace plexaura::fast
