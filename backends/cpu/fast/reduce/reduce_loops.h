#pragma once

#include <cstdint>

namespace plexaura::fast {

// The most columns that one call of add_columns() adds up.
constexpr std::int64_t most_columns = 64;

// Returns the sum of `count` neighbouring elements.
double sum_of(const float* x, std::int64_t count);

// sums[c] += the sum over rows of x[row * stride + c], for `columns` <= most_columns.
void add_columns(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* sums);

}  // namespace plexaura::fast
