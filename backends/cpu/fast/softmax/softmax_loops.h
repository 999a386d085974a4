#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// The most columns that one call of softmax_columns() computes.
constexpr std::int64_t most_softmax_columns = 64;

// Loops of softmax and log_softmax of float32 and float64. Sums are added up in double, in an order that depends only
// on the extents. The result may have the address of the input. A line with NaN, with +infinity or with only -infinity
// becomes NaN.

// Each of `rows` rows of `extent` neighbouring elements is a line.
PLEXAURA_CLONED void softmax_rows(const float* x, std::int64_t rows, std::int64_t extent, float* y);
PLEXAURA_CLONED void softmax_rows(const double* x, std::int64_t rows, std::int64_t extent, double* y);
PLEXAURA_CLONED void log_softmax_rows(const float* x, std::int64_t rows, std::int64_t extent, float* y);
PLEXAURA_CLONED void log_softmax_rows(const double* x, std::int64_t rows, std::int64_t extent, double* y);

// Each of `columns` <= most_softmax_columns neighbouring columns is a line. Its `extent` elements are `stride` apart.
PLEXAURA_CLONED void softmax_columns(const float* x, std::int64_t extent, std::int64_t stride,
                                     std::int64_t columns, float* y);
PLEXAURA_CLONED void softmax_columns(const double* x, std::int64_t extent, std::int64_t stride,
                                     std::int64_t columns, double* y);
PLEXAURA_CLONED void log_softmax_columns(const float* x, std::int64_t extent, std::int64_t stride,
                                         std::int64_t columns, float* y);
PLEXAURA_CLONED void log_softmax_columns(const double* x, std::int64_t extent, std::int64_t stride,
                                         std::int64_t columns, double* y);

// Compute the gradients of softmax, y (grad - sum(grad y)), and of log_softmax, grad - e^y sum(grad). y is the result of
// the forward op, and `grad` the gradient of y. `result` may have the address of y or of `grad`.
PLEXAURA_CLONED void softmax_grad_rows(const float* y, const float* grad, std::int64_t rows,
                                       std::int64_t extent, float* result);
PLEXAURA_CLONED void softmax_grad_rows(const double* y, const double* grad, std::int64_t rows,
                                       std::int64_t extent, double* result);
PLEXAURA_CLONED void log_softmax_grad_rows(const float* y, const float* grad, std::int64_t rows,
                                           std::int64_t extent, float* result);
PLEXAURA_CLONED void log_softmax_grad_rows(const double* y, const double* grad, std::int64_t rows,
                                           std::int64_t extent, double* result);

}  // namespace plexaura::fast
