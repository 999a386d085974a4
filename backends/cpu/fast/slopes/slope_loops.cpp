#include "backends/cpu/fast/slopes/slope_loops.h"

#include "backends/cpu/fast/clones.h"
#include "backends/cpu/fast/math/vector_math.h"
#include "core/ops/functors.h"

// Each loop has the formula of the op's vjp().

namespace plexaura::fast {

PLEXAURA_CLONES void gelu_grad_loop(const float* x, const float* grad, float* result, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float density = 0.398942280F * VectorMath::exp(-0.5F * (x[i] * x[i]));
    result[i] = grad[i] * (0.5F * (1.F + VectorMath::erf(x[i] * 0.707106781F)) + x[i] * density);
  }
}

PLEXAURA_CLONES void gelu_tanh_grad_loop(const float* x, const float* grad, float* result,
                                         std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float square = x[i] * x[i];
    const float t = VectorMath::tanh(0.797884561F * (x[i] + 0.044715F * (x[i] * square)));
    const float rise = 0.398942280F * x[i] * (1.F - t * t) * (1.F + 0.134145F * square);
    result[i] = grad[i] * (0.5F * (1.F + t) + rise);
  }
}

PLEXAURA_CLONES void silu_grad_loop(const float* x, const float* grad, float* result, std::int64_t count) {
  const functors::Sigmoid<float, VectorMath> sigmoid(nullptr);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float s = sigmoid(x[i]);
    result[i] = grad[i] * (s * (1.F + x[i] * (1.F - s)));
  }
}

// The slope is 0 up to and at -3, and 1 from 3 on.
PLEXAURA_CLONES void hard_swish_grad_loop(const float* x, const float* grad, float* result,
                                          std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float middle = grad[i] * (x[i] * 0.333333333F + 0.5F);
    result[i] = x[i] <= -3.F ? 0.F : (x[i] >= 3.F ? grad[i] : middle);
  }
}

}  // namespace plexaura::fast
