#pragma once

#include <cstdint>

namespace plexaura::fast {

// Columns that are added up together.
constexpr std::int64_t most_columns = 64;

// The sum of `count` neighbouring elements.
double sum_of(const float* x, std::int64_t count);

// sums[c] += the sum over rows of x[row * stride + c], for `columns` <= most_columns.
void add_columns(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* sums);

}  // namespace plexaura::fast
