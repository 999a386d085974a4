#pragma once

// Assumed speeds of the CPU, per second, for comparing kernels before any of them has run. Only their ratios
// matter, and these are right within a factor of two on any processor.

namespace plexaura::costs {

constexpr double seconds_of_launch = 3e-7;
constexpr double seconds_of_library_call = 4e-7;  // the extra time of a oneDNN primitive over a loop of ours

constexpr double bytes_of_memory = 2e10;
constexpr double bytes_of_portable_kernels = 2e9;
constexpr double bytes_of_reorders = 1e10;
constexpr double traffic_of_tables = 4;        // a copy by tables also reads its tables
constexpr double traffic_of_batch_norm = 1.5;  // it reads its input twice

// Floating-point operations of matrix products and convolutions. Operations on padding count too.
constexpr double operations = 2e11;
constexpr double operations_of_small_products = 8e10;  // on one thread, which uses few registers
// Vectors of 8 channels use half of the widest registers.
constexpr double operations_on_8_lanes = 1.6e11;
// For a convolution that first copies its source to a matrix: the elements of that matrix, and the operations
// on it.
constexpr double copied_elements = 2.5e9;
constexpr double operations_on_columns = 5e10;

}  // namespace plexaura::costs
