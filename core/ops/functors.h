#pragma once

// The formulas of the elementwise ops, the same for every device. This header includes nothing, so that a
// run-time compiler of device code can read it.
//
// T is the type of the computation: double, float or an integer. The caller converts 16-bit floats to float.
// Math provides exp, log and the like as static functions of T. The including file defines it, because a
// plain kernel, a vectorised one and a device need different ones:
//   struct Math { static T exp(T); static T log(T); static T sqrt(T); static T tanh(T); ... };
// Functors that need no Math also take it, so that a kernel can be written once for all of them.

#ifndef PLEXAURA_HD
#define PLEXAURA_HD
#endif

namespace plexaura::functors {

// Sums, differences and products of integers wrap around on every device.
template <class T>
PLEXAURA_HD inline T wrapping_add(T a, T b) {
  return static_cast<T>(a + b);
}
template <class T>
PLEXAURA_HD inline T wrapping_sub(T a, T b) {
  return static_cast<T>(a - b);
}
template <class T>
PLEXAURA_HD inline T wrapping_mul(T a, T b) {
  return static_cast<T>(a * b);
}
#define PLEXAURA_WRAPPING(Signed, Unsigned)                                          \
  template <>                                                                        \
  PLEXAURA_HD inline Signed wrapping_add<Signed>(Signed a, Signed b) {               \
    return static_cast<Signed>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)); \
  }                                                                                  \
  template <>                                                                        \
  PLEXAURA_HD inline Signed wrapping_sub<Signed>(Signed a, Signed b) {               \
    return static_cast<Signed>(static_cast<Unsigned>(a) - static_cast<Unsigned>(b)); \
  }                                                                                  \
  template <>                                                                        \
  PLEXAURA_HD inline Signed wrapping_mul<Signed>(Signed a, Signed b) {               \
    return static_cast<Signed>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b)); \
  }
PLEXAURA_WRAPPING(int, unsigned)
PLEXAURA_WRAPPING(long, unsigned long)
PLEXAURA_WRAPPING(long long, unsigned long long)
#undef PLEXAURA_WRAPPING

// Integer division rounds towards zero. Division by zero gives 0; the smallest integer divided by -1 wraps
// around.
template <class T>
PLEXAURA_HD inline T divide(T a, T b) {
  if (b == T(0)) return T(0);
  const bool negates = T(-1) < T(0) && b == static_cast<T>(-1);
  return negates ? wrapping_sub(T(0), a) : static_cast<T>(a / b);
}
template <>
PLEXAURA_HD inline float divide<float>(float a, float b) {
  return a / b;
}
template <>
PLEXAURA_HD inline double divide<double>(double a, double b) {
  return a / b;
}

template <class T>
PLEXAURA_HD constexpr bool is_whole() {
  return static_cast<T>(0.5) == T(0);
}

template <class T>
PLEXAURA_HD inline bool is_negative(T x) {
  return T(-1) < T(0) && x < T(0);
}

// Returns a - b floor(a / b), which has the sign of b. For integers with b = 0 it is a.
template <class T, class Math>
PLEXAURA_HD inline T modulo(T a, T b) {
  T rest = a;
  if constexpr (is_whole<T>()) {
    if (b == T(0)) return a;
    const bool is_minus_one = T(-1) < T(0) && b == static_cast<T>(-1);
    rest = is_minus_one ? T(0) : static_cast<T>(a % b);
  } else {
    rest = Math::fmod(a, b);
  }
  return rest != T(0) && is_negative(rest) != is_negative(b) ? static_cast<T>(rest + b) : rest;
}

// Returns floor(a / b) of floats whose quotient has this remainder, for b != 0. It has no branches, so that a loop may
// use vectors.
template <class T, class Math>
PLEXAURA_HD inline T floor_of_quotient(T a, T b, T rest) {
  const T whole = Math::rint((a - rest) / b);
  const bool is_below = (rest != T(0)) & ((rest < T(0)) != (b < T(0)));
  return whole - (is_below ? T(1) : T(0));
}

// Returns floor(a / b). For floats it is exact, even if rounding a / b would give the next whole number. For
// integers with b = 0 it is 0.
template <class T, class Math>
PLEXAURA_HD inline T floor_divide(T a, T b) {
  if constexpr (is_whole<T>()) {
    const T quotient = divide(a, b);
    const bool is_exact = wrapping_mul(quotient, b) == a;
    return b == T(0) || is_exact || is_negative(a) == is_negative(b) ? quotient
                                                                     : static_cast<T>(quotient - 1);
  } else {
    if (b == T(0)) return a / b;
    return floor_of_quotient<T, Math>(a, b, Math::fmod(a, b));
  }
}

template <class T>
PLEXAURA_HD inline T whole_power(T x, int exponent) {
  T power = T(1);
  for (int i = 0; i < exponent; ++i) power *= x;
  return power;
}

// Returns the sum of (q + k)^-s for k = 0, 1, ..., with q >= 0 and s >= 2: the first terms one by one, the rest
// by the Euler-Maclaurin formula.
template <class T>
PLEXAURA_HD inline T hurwitz_zeta(int s, T q) {
  T sum = T(0);
  for (; q < T(10 + s); q += T(1)) sum += T(1) / whole_power(q, s);
  const T rest = T(1) / whole_power(q, s - 1);
  const T first = rest / q;
  sum += rest / T(s - 1) + T(0.5) * first;
  // B(2j) / (2j)!
  const double coefficients[] = {1.0 / 12,
                                 -1.0 / 720,
                                 1.0 / 30240,
                                 -1.0 / 1209600,
                                 1.0 / 47900160,
                                 -691.0 / 1307674368000,
                                 1.0 / 74724249600.0,
                                 -3617.0 / 10670622842880000.0};
  T factor = first * T(s) / q;
  for (int j = 0; j < 8; ++j) {
    sum += static_cast<T>(coefficients[j]) * factor;
    factor *= T(s + 2 * j + 1) / q * (T(s + 2 * j + 2) / q);
  }
  // If q is infinite, all terms are 0. If q is NaN, so is the sum.
  return q - q == T(0) ? sum : (q > T(0) ? T(0) : q);
}

// The derivative of log(gamma(x)) for x >= 0: by the recurrence up to 10, then by the asymptotic series.
template <class T, class Math>
PLEXAURA_HD inline T digamma_of_positive(T x) {
  T sum = T(0);
  for (; x < T(10); x += T(1)) sum -= T(1) / x;
  const T z = T(1) / x / x;
  T tail = T(1.0 / 12);
  tail = tail * z - T(691.0 / 32760);
  tail = tail * z + T(1.0 / 132);
  tail = tail * z - T(1.0 / 240);
  tail = tail * z + T(1.0 / 252);
  tail = tail * z - T(1.0 / 120);
  tail = tail * z + T(1.0 / 12);
  return sum + Math::log(x) - T(0.5) / x - tail * z;
}

// For x < 0 this is digamma(1 - x) - pi / tan(pi x), which is NaN at the poles -1, -2, ... The distance to the
// nearest pole is exact.
template <class T, class Math>
PLEXAURA_HD inline T digamma(T x) {
  if (!(x < T(0))) return digamma_of_positive<T, Math>(x);
  const T fraction = x - Math::rint(x);
  if (fraction == T(0)) return fraction / fraction;
  const T pi = T(3.14159265358979324);
  return digamma_of_positive<T, Math>(T(1) - x) - pi / Math::tan(pi * fraction);
}

// Returns (-1)^s times the sum of (x + k)^-s for k = 0, 1, ..., for any x. For x < 0 the terms with x + k < 0
// are the difference of two such sums. The distances to the whole numbers below and above x are computed one by
// one, since the smaller one is exact.
template <class T, class Math>
PLEXAURA_HD inline T alternating_zeta(int s, T x) {
  const T sign = s % 2 == 0 ? T(1) : T(-1);
  if (!(x < T(0))) return sign * hurwitz_zeta(s, x);
  const T below = Math::floor(x);
  return sign * hurwitz_zeta(s, x - below) + hurwitz_zeta(s, (below + T(1)) - x) - hurwitz_zeta(s, T(1) - x);
}

// Returns x with erf(x) = y: an estimate with three digits, then steps of Halley's method, each of which triples
// the number of correct digits.
template <class T, class Math>
PLEXAURA_HD inline T inverse_erf(T y) {
  const T size = Math::abs(y);
  if (!(size < T(1))) return size == T(1) ? y / (T(1) - size) : (y - y) / (y - y);
  const bool is_large = size > T(0.5);
  const T logarithm = is_large ? Math::log((T(1) - size) * (T(1) + size)) : Math::log1p(-size * size);
  const T scaled = logarithm / T(0.147);
  const T middle = T(4.33074675) + T(0.5) * logarithm;
  T x = Math::sqrt(-scaled / (Math::sqrt(middle * middle - scaled) + middle));
  for (int step = 0; step < 3; ++step) {
    const T error = is_large ? (T(1) - size) - Math::erfc(x) : Math::erf(x) - size;
    const T newton = error * T(0.88622692545275801) * Math::exp(x * x);
    x -= newton / (T(1) + x * newton);
  }
  return y < T(0) ? -x : x;
}

// A functor is constructed from the options of its op, numbers in the order of its members. Most have none.
#define PLEXAURA_UNARY_FUNCTOR(Name, ...)               \
  template <class T, class Math>                        \
  struct Name {                                         \
    PLEXAURA_HD explicit Name(const double*) {}         \
    PLEXAURA_HD T operator()(T x) const { __VA_ARGS__ } \
  };

PLEXAURA_UNARY_FUNCTOR(Neg, return -x;)
PLEXAURA_UNARY_FUNCTOR(Abs, return Math::abs(x);)
PLEXAURA_UNARY_FUNCTOR(Exp, return Math::exp(x);)
PLEXAURA_UNARY_FUNCTOR(Log, return Math::log(x);)
PLEXAURA_UNARY_FUNCTOR(Sqrt, return Math::sqrt(x);)
PLEXAURA_UNARY_FUNCTOR(Square, return x * x;)
PLEXAURA_UNARY_FUNCTOR(Tanh, return Math::tanh(x);)
// The argument of exp is never positive, so it cannot overflow.
PLEXAURA_UNARY_FUNCTOR(Sigmoid, const T e = Math::exp(-Math::abs(x)); const T part = T(1) / (T(1) + e);
                       return x < T(0) ? e * part : part;)
// max(x, 0) + log(1 + e^-|x|)
PLEXAURA_UNARY_FUNCTOR(Softplus, const T tail = Math::log1p(Math::exp(-Math::abs(x)));
                       return x < T(0) ? tail : x + tail;)
// NaN remains NaN.
PLEXAURA_UNARY_FUNCTOR(Relu, return x < T(0) ? T(0) : x;)
PLEXAURA_UNARY_FUNCTOR(Erf, return Math::erf(x);)
PLEXAURA_UNARY_FUNCTOR(Gelu, return T(0.5) * x * (T(1) + Math::erf(x * T(0.70710678118654752)));)
PLEXAURA_UNARY_FUNCTOR(GeluTanh, const T inner = x + T(0.044715) * (x * x * x);
                       return T(0.5) * x * (T(1) + Math::tanh(T(0.79788456080286536) * inner));)
// Zeros keep their sign, and NaN stays NaN.
PLEXAURA_UNARY_FUNCTOR(Sign, return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x);)
PLEXAURA_UNARY_FUNCTOR(Ceil, return Math::ceil(x);)
PLEXAURA_UNARY_FUNCTOR(Floor, return Math::floor(x);)
PLEXAURA_UNARY_FUNCTOR(Round, return Math::rint(x);)
PLEXAURA_UNARY_FUNCTOR(Trunc, return Math::trunc(x);)
PLEXAURA_UNARY_FUNCTOR(Cube, return x * x * x;)
PLEXAURA_UNARY_FUNCTOR(Rsqrt, return T(1) / Math::sqrt(x);)
PLEXAURA_UNARY_FUNCTOR(Exp2, return Math::exp2(x);)
PLEXAURA_UNARY_FUNCTOR(Expm1, return Math::expm1(x);)
PLEXAURA_UNARY_FUNCTOR(Log2, return Math::log2(x);)
PLEXAURA_UNARY_FUNCTOR(Log10, return Math::log10(x);)
PLEXAURA_UNARY_FUNCTOR(Log1p, return Math::log1p(x);)
PLEXAURA_UNARY_FUNCTOR(Sin, return Math::sin(x);)
PLEXAURA_UNARY_FUNCTOR(Cos, return Math::cos(x);)
PLEXAURA_UNARY_FUNCTOR(Tan, return Math::tan(x);)
PLEXAURA_UNARY_FUNCTOR(Asin, return Math::asin(x);)
PLEXAURA_UNARY_FUNCTOR(Acos, return Math::acos(x);)
PLEXAURA_UNARY_FUNCTOR(Atan, return Math::atan(x);)
PLEXAURA_UNARY_FUNCTOR(Sinh, return Math::sinh(x);)
PLEXAURA_UNARY_FUNCTOR(Cosh, return Math::cosh(x);)
PLEXAURA_UNARY_FUNCTOR(Asinh, return Math::asinh(x);)
PLEXAURA_UNARY_FUNCTOR(Acosh, return Math::acosh(x);)
PLEXAURA_UNARY_FUNCTOR(Atanh, return Math::atanh(x);)
PLEXAURA_UNARY_FUNCTOR(Erfc, return Math::erfc(x);)
PLEXAURA_UNARY_FUNCTOR(Erfinv, return (inverse_erf<T, Math>(x));)
PLEXAURA_UNARY_FUNCTOR(Lgamma, return Math::lgamma(x);)
// min(x, 0) - log(1 + e^-|x|)
PLEXAURA_UNARY_FUNCTOR(LogSigmoid, const T tail = Math::log1p(Math::exp(-Math::abs(x)));
                       return x < T(0) ? x - tail : -tail;)
PLEXAURA_UNARY_FUNCTOR(Softsign, return x / (T(1) + Math::abs(x));)
PLEXAURA_UNARY_FUNCTOR(Selu, return T(1.0507009873554805) *
                                    (x > T(0) ? x : T(1.6732632423543772) * Math::expm1(x));)
PLEXAURA_UNARY_FUNCTOR(Silu, const T e = Math::exp(-Math::abs(x)); const T part = T(1) / (T(1) + e);
                       return x * (x < T(0) ? e * part : part);)
// tanh(log(1 + e^x)) is n / (n + 2) with n = e^x (e^x + 2); for x > 0 both are divided by e^2x.
PLEXAURA_UNARY_FUNCTOR(Mish, const T e = Math::exp(-Math::abs(x)); const T n = e * (e + T(2));
                       const T m = T(1) + T(2) * e;
                       return x * (x < T(0) ? n / (n + T(2)) : m / (m + T(2) * e * e));)
PLEXAURA_UNARY_FUNCTOR(HardSigmoid, const T y = (x + T(3)) / T(6);
                       return y < T(0) ? T(0) : (y > T(1) ? T(1) : y);)
PLEXAURA_UNARY_FUNCTOR(HardSwish, const T y = (x + T(3)) / T(6);
                       return x * (y < T(0) ? T(0) : (y > T(1) ? T(1) : y));)
#undef PLEXAURA_UNARY_FUNCTOR

// NaN remains NaN.
template <class T, class Math>
struct LeakyRelu {
  T slope;
  PLEXAURA_HD explicit LeakyRelu(const double* options) : slope(static_cast<T>(options[0])) {}
  PLEXAURA_HD T operator()(T x) const { return x > T(0) ? x : slope * x; }
};

template <class T, class Math>
struct Clip {
  T low;
  T high;
  PLEXAURA_HD explicit Clip(const double* options)
      : low(static_cast<T>(options[0])), high(static_cast<T>(options[1])) {}
  PLEXAURA_HD T operator()(T x) const { return x < low ? low : (x > high ? high : x); }
};

// x where x > 0, else alpha (e^(rate x) - 1).
template <class T, class Math>
struct Elu {
  T alpha;
  T rate;
  PLEXAURA_HD explicit Elu(const double* options)
      : alpha(static_cast<T>(options[0])), rate(static_cast<T>(options[1])) {}
  PLEXAURA_HD T operator()(T x) const { return x > T(0) ? x : alpha * Math::expm1(rate * x); }
};

// The derivative of digamma, taken `order` times. For an order above 0 it is (-1)^s (s - 1)! times the sum of
// (x + k)^-s for k = 0, 1, ..., with s = order + 1.
template <class T, class Math>
struct Polygamma {
  int order;
  PLEXAURA_HD explicit Polygamma(const double* options) : order(static_cast<int>(options[0])) {}
  PLEXAURA_HD T operator()(T x) const {
    if (order == 0) return digamma<T, Math>(x);
    T factorial = T(1);
    for (int i = 2; i <= order; ++i) factorial *= T(i);
    return factorial * alternating_zeta<T, Math>(order + 1, x);
  }
};

#define PLEXAURA_BINARY_FUNCTOR(Name, Result, ...)                \
  template <class T, class Math>                                  \
  struct Name {                                                   \
    PLEXAURA_HD explicit Name(const double*) {}                   \
    PLEXAURA_HD Result operator()(T a, T b) const { __VA_ARGS__ } \
  };

PLEXAURA_BINARY_FUNCTOR(Add, T, return wrapping_add(a, b);)
PLEXAURA_BINARY_FUNCTOR(Sub, T, return wrapping_sub(a, b);)
PLEXAURA_BINARY_FUNCTOR(Mul, T, return wrapping_mul(a, b);)
PLEXAURA_BINARY_FUNCTOR(Div, T, return divide(a, b);)
PLEXAURA_BINARY_FUNCTOR(MulNoNan, T, return a == T(0) ? a : a * b;)
// If either operand is NaN, the result is NaN.
PLEXAURA_BINARY_FUNCTOR(Maximum, T, return a > b || a != a ? a : b;)
PLEXAURA_BINARY_FUNCTOR(Minimum, T, return a < b || a != a ? a : b;)
PLEXAURA_BINARY_FUNCTOR(Pow, T, return Math::pow(a, b);)
PLEXAURA_BINARY_FUNCTOR(Eq, bool, return a == b;)
PLEXAURA_BINARY_FUNCTOR(Ne, bool, return a != b;)
PLEXAURA_BINARY_FUNCTOR(Lt, bool, return a < b;)
PLEXAURA_BINARY_FUNCTOR(Le, bool, return a <= b;)
PLEXAURA_BINARY_FUNCTOR(Gt, bool, return a > b;)
PLEXAURA_BINARY_FUNCTOR(Ge, bool, return a >= b;)
// a is the logit, b the target: max(a, 0) - a b + log(1 + e^-|a|). A weight of 0 gives 0, even for an infinite logit.
PLEXAURA_BINARY_FUNCTOR(SigmoidCrossEntropy, T, const T weight = a < T(0) ? -b : T(1) - b;
                        return (weight == T(0) ? T(0) : weight * a) + Math::log1p(Math::exp(-Math::abs(a)));)
PLEXAURA_BINARY_FUNCTOR(FloorDiv, T, return (floor_divide<T, Math>(a, b));)
PLEXAURA_BINARY_FUNCTOR(Mod, T, return (modulo<T, Math>(a, b));)
PLEXAURA_BINARY_FUNCTOR(Atan2, T, return Math::atan2(a, b);)
PLEXAURA_BINARY_FUNCTOR(Hypot, T, return Math::hypot(a, b);)
// b is the slope.
PLEXAURA_BINARY_FUNCTOR(Prelu, T, return a > T(0) ? a : b * a;)
PLEXAURA_BINARY_FUNCTOR(BitwiseAnd, T, return static_cast<T>(a & b);)
PLEXAURA_BINARY_FUNCTOR(BitwiseOr, T, return static_cast<T>(a | b);)
PLEXAURA_BINARY_FUNCTOR(BitwiseXor, T, return static_cast<T>(a ^ b);)
// If b is negative, or at least the number of bits of the dtype, all bits are shifted out.
PLEXAURA_BINARY_FUNCTOR(LeftShift, T, const bool stays = !is_negative(b) && b < T(8 * sizeof(T));
                        return stays ? static_cast<T>(a << b) : T(0);)
PLEXAURA_BINARY_FUNCTOR(RightShift, T, const bool stays = !is_negative(b) && b < T(8 * sizeof(T));
                        return static_cast<T>(stays ? a >> b : (is_negative(a) ? -1 : 0));)
#undef PLEXAURA_BINARY_FUNCTOR

template <class T, class Math>
struct WeightedSum {
  T weight_a;
  T weight_b;
  PLEXAURA_HD explicit WeightedSum(const double* options)
      : weight_a(static_cast<T>(options[0])), weight_b(static_cast<T>(options[1])) {}
  PLEXAURA_HD T operator()(T a, T b) const { return weight_a * a + weight_b * b; }
};

// (c / divisor) (d - c / 2), where d is a - b and c is d clipped to [-limit, limit]. This is a parabola within the limits,
// and its tangents beyond. c is divided, and not the product, because the product may overflow.
template <class T, class Math>
struct Huber {
  T limit;
  T divisor;
  PLEXAURA_HD explicit Huber(const double* options)
      : limit(static_cast<T>(options[0])), divisor(static_cast<T>(options[1])) {}
  PLEXAURA_HD T operator()(T a, T b) const {
    const T difference = a - b;
    const T above = difference < -limit ? -limit : difference;
    const T capped = above > limit ? limit : above;
    return capped / divisor * (difference - T(0.5) * capped);
  }
};

template <class T, class Math>
struct PowLog {
  int order;
  PLEXAURA_HD explicit PowLog(const double* options) : order(static_cast<int>(options[0])) {}
  PLEXAURA_HD T operator()(T a, T b) const {
    const T power = Math::pow(a, b);
    if (order == 0) return power;
    const T logarithm = Math::log(a);
    T factor = T(1);
    for (int i = 0; i < order; ++i) factor *= logarithm;
    return power == T(0) ? power : power * factor;
  }
};

}  // namespace plexaura::functors
