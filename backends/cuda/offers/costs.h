#pragma once

#include <vector>

#include "core/device/backend.h"

// What the estimates of all kernels share.

namespace plexaura::cuda {

constexpr double seconds_of_launch = 3e-6;
// Multiplications and additions in a second: orders of magnitude, which tell the plugin's kernels from those of the
// libraries.
constexpr double operations_of_own_kernels = 1e11;
constexpr double operations_of_libraries = 2e13;

// Multiplications and additions of a matrix product, of a convolution or of its gradients; of all other ops 0.
double operations_of(const RegionQuery& query);

double bytes_of(const RegionQuery& query);  // read and written

}  // namespace plexaura::cuda
