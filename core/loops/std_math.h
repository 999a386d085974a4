#pragma once

#include <cmath>

namespace plexaura {

// The functions that the functors of core/ops/functors.h call, from the standard library.
struct StdMath {
  template <class T>
  static T abs(T x) {
    return std::abs(x);
  }
  template <class T>
  static T exp(T x) {
    return std::exp(x);
  }
  template <class T>
  static T log(T x) {
    return std::log(x);
  }
  template <class T>
  static T log1p(T x) {
    return std::log1p(x);
  }
  template <class T>
  static T sqrt(T x) {
    return std::sqrt(x);
  }
  template <class T>
  static T tanh(T x) {
    return std::tanh(x);
  }
  template <class T>
  static T erf(T x) {
    return std::erf(x);
  }
  template <class T>
  static T pow(T a, T b) {
    return std::pow(a, b);
  }
};

}  // namespace plexaura
