#pragma once

#include <vector>

#include "core/device/backend.h"

// Constants and functions for the estimates of all kernels.

namespace plexaura::cuda {

constexpr double seconds_of_launch = 3e-6;
// Multiplications and additions in a second. These are orders of magnitude, enough to prefer the libraries'
// kernels to the plugin's own.
constexpr double operations_of_own_kernels = 1e11;
constexpr double operations_of_libraries = 2e13;

// Returns the number of multiplications and additions of a matrix product, a conv2d or one of its gradients; 0
// for all other ops, also for a conv3d.
double operations_of(const RegionQuery& query);

double bytes_of(const RegionQuery& query);  // returns the bytes that are read and written

}  // namespace plexaura::cuda
