#include "backends/cpu/fast/slopes/slope_loops.h"

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/math/math_of.h"
#include "core/ops/functors.h"

namespace plexaura::fast {

namespace {

// Each of these functions has the formula of the op's vjp().

template <class T>
PLEXAURA_INLINE void gelu_grad(const T* x, const T* grad, T* result, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const T density = T(0.3989422804014327) * MathOf<T>::exp(T(-0.5) * (x[i] * x[i]));
    result[i] = grad[i] * (T(0.5) * (T(1) + MathOf<T>::erf(x[i] * T(0.70710678118654752))) + x[i] * density);
  }
}

template <class T>
PLEXAURA_INLINE void gelu_tanh_grad(const T* x, const T* grad, T* result, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const T square = x[i] * x[i];
    const T t = MathOf<T>::tanh(T(0.79788456080286536) * (x[i] + T(0.044715) * (x[i] * square)));
    const T rise = T(0.3989422804014327) * x[i] * (T(1) - t * t) * (T(1) + T(0.134145) * square);
    result[i] = grad[i] * (T(0.5) * (T(1) + t) + rise);
  }
}

template <class T>
PLEXAURA_INLINE void silu_grad(const T* x, const T* grad, T* result, std::int64_t count) {
  const functors::Sigmoid<T, MathOf<T>> sigmoid(nullptr);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const T s = sigmoid(x[i]);
    result[i] = grad[i] * (s * (T(1) + x[i] * (T(1) - s)));
  }
}

// The slope is 0 up to and at -3, and 1 from 3 on.
template <class T>
PLEXAURA_INLINE void hard_swish_grad(const T* x, const T* grad, T* result, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const T middle = grad[i] * (x[i] * T(1. / 3) + T(0.5));
    result[i] = x[i] <= T(-3) ? T(0) : (x[i] >= T(3) ? grad[i] : middle);
  }
}

}  // namespace

PLEXAURA_CLONES void gelu_grad_loop(const float* x, const float* grad, float* result, std::int64_t count) {
  gelu_grad(x, grad, result, count);
}

PLEXAURA_CLONES void gelu_tanh_grad_loop(const float* x, const float* grad, float* result,
                                         std::int64_t count) {
  gelu_tanh_grad(x, grad, result, count);
}

PLEXAURA_CLONES void gelu_tanh_grad_loop(const double* x, const double* grad, double* result,
                                         std::int64_t count) {
  gelu_tanh_grad(x, grad, result, count);
}

PLEXAURA_CLONES void silu_grad_loop(const float* x, const float* grad, float* result, std::int64_t count) {
  silu_grad(x, grad, result, count);
}

PLEXAURA_CLONES void silu_grad_loop(const double* x, const double* grad, double* result, std::int64_t count) {
  silu_grad(x, grad, result, count);
}

PLEXAURA_CLONES void hard_swish_grad_loop(const float* x, const float* grad, float* result,
                                          std::int64_t count) {
  hard_swish_grad(x, grad, result, count);
}

PLEXAURA_CLONES void hard_swish_grad_loop(const double* x, const double* grad, double* result,
                                          std::int64_t count) {
  hard_swish_grad(x, grad, result, count);
}

}  // namespace plexaura::fast
