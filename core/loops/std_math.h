#pragma once

#include <cmath>

#ifndef PLEXAURA_HD
#ifdef __CUDACC__
#define PLEXAURA_HD __host__ __device__
#else
#define PLEXAURA_HD
#endif
#endif

namespace plexaura {

// The functions that the functors of core/ops/functors.h call, from the standard library, on the host and on GPUs.
struct StdMath {
  template <class T>
  PLEXAURA_HD static T abs(T x) {
    return std::abs(x);
  }
  template <class T>
  PLEXAURA_HD static T exp(T x) {
    return std::exp(x);
  }
  template <class T>
  PLEXAURA_HD static T log(T x) {
    return std::log(x);
  }
  template <class T>
  PLEXAURA_HD static T log1p(T x) {
    return std::log1p(x);
  }
  template <class T>
  PLEXAURA_HD static T sqrt(T x) {
    return std::sqrt(x);
  }
  template <class T>
  PLEXAURA_HD static T tanh(T x) {
    return std::tanh(x);
  }
  template <class T>
  PLEXAURA_HD static T erf(T x) {
    return std::erf(x);
  }
  template <class T>
  PLEXAURA_HD static T pow(T a, T b) {
    return std::pow(a, b);
  }
#define PLEXAURA_STANDARD(name)    \
  template <class T>               \
  PLEXAURA_HD static T name(T x) { \
    return std::name(x);           \
  }
  PLEXAURA_STANDARD(floor)
  PLEXAURA_STANDARD(ceil)
  PLEXAURA_STANDARD(rint)
  PLEXAURA_STANDARD(trunc)
  PLEXAURA_STANDARD(exp2)
  PLEXAURA_STANDARD(expm1)
  PLEXAURA_STANDARD(log2)
  PLEXAURA_STANDARD(log10)
  PLEXAURA_STANDARD(sin)
  PLEXAURA_STANDARD(cos)
  PLEXAURA_STANDARD(tan)
  PLEXAURA_STANDARD(asin)
  PLEXAURA_STANDARD(acos)
  PLEXAURA_STANDARD(atan)
  PLEXAURA_STANDARD(sinh)
  PLEXAURA_STANDARD(cosh)
  PLEXAURA_STANDARD(asinh)
  PLEXAURA_STANDARD(acosh)
  PLEXAURA_STANDARD(atanh)
  PLEXAURA_STANDARD(erfc)
#undef PLEXAURA_STANDARD
  template <class T>
  PLEXAURA_HD static T fmod(T a, T b) {
    return std::fmod(a, b);
  }
  template <class T>
  PLEXAURA_HD static T atan2(T a, T b) {
    return std::atan2(a, b);
  }
  template <class T>
  PLEXAURA_HD static T hypot(T a, T b) {
    return std::hypot(a, b);
  }
  template <class T>
  PLEXAURA_HD static T lgamma(T x) {
#ifdef __CUDACC__
    return std::lgamma(x);
#else
    return lgamma_of_thread(x);
#endif
  }

 private:
  // On the host std::lgamma writes the sign of gamma to a variable that all threads share.
  static float lgamma_of_thread(float x) {
    int sign = 0;
    return lgammaf_r(x, &sign);
  }
  static double lgamma_of_thread(double x) {
    int sign = 0;
    return lgamma_r(x, &sign);
  }
};

}  // namespace plexaura
