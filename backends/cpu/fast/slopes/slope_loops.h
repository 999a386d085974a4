#pragma once

#include <cstdint>

namespace plexaura::fast {

// result = grad * f'(x), the gradients of elementwise ops by x. The result may have the address of x or of grad.
using SlopeLoop = void (*)(const float* x, const float* grad, float* result, std::int64_t count);

void gelu_grad_loop(const float* x, const float* grad, float* result, std::int64_t count);
void gelu_tanh_grad_loop(const float* x, const float* grad, float* result, std::int64_t count);
void silu_grad_loop(const float* x, const float* grad, float* result, std::int64_t count);
void hard_swish_grad_loop(const float* x, const float* grad, float* result, std::int64_t count);

}  // namespace plexaura::fast
