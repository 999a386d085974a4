#pragma once

#include <cstddef>
#include <cstdint>

namespace plexaura::fast {

// True if all indices are from 0 to extent - 1.
bool all_inside(const std::int64_t* indices, std::int64_t count, std::int64_t extent);

// sums[i] += addends[i]
void add_row(const float* addends, float* sums, std::int64_t count);
void add_row(const double* addends, double* sums, std::int64_t count);

}  // namespace plexaura::fast
