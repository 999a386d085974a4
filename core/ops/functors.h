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
// a is the logit, b the target: max(a, 0) - a b + log(1 + e^-|a|).
PLEXAURA_BINARY_FUNCTOR(SigmoidCrossEntropy, T,
                        return (a < T(0) ? T(0) : a) - a * b + Math::log1p(Math::exp(-Math::abs(a)));)
#undef PLEXAURA_BINARY_FUNCTOR

template <class T, class Math>
struct WeightedSum {
  T weight_a;
  T weight_b;
  PLEXAURA_HD explicit WeightedSum(const double* options)
      : weight_a(static_cast<T>(options[0])), weight_b(static_cast<T>(options[1])) {}
  PLEXAURA_HD T operator()(T a, T b) const { return weight_a * a + weight_b * b; }
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
