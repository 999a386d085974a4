#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// result = grad * f'(x), the gradients of elementwise ops by x. The result may have the address of x or of grad.
template <class T>
using SlopeLoop = void (*)(const T* x, const T* grad, T* result, std::int64_t count);

PLEXAURA_CLONED void gelu_grad_loop(const float* x, const float* grad, float* result, std::int64_t count);
PLEXAURA_CLONED void gelu_tanh_grad_loop(const float* x, const float* grad, float* result,
                                         std::int64_t count);
PLEXAURA_CLONED void gelu_tanh_grad_loop(const double* x, const double* grad, double* result,
                                         std::int64_t count);
PLEXAURA_CLONED void silu_grad_loop(const float* x, const float* grad, float* result, std::int64_t count);
PLEXAURA_CLONED void silu_grad_loop(const double* x, const double* grad, double* result, std::int64_t count);
PLEXAURA_CLONED void hard_swish_grad_loop(const float* x, const float* grad, float* result,
                                          std::int64_t count);
PLEXAURA_CLONED void hard_swish_grad_loop(const double* x, const double* grad, double* result,
                                          std::int64_t count);

}  // namespace plexaura::fast
