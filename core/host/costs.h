#pragma once

// Assumed speeds of the CPU, per second, for comparing kernels before any of them has run. Only their ratios
// matter, and these are right within a factor of two on any processor.

namespace plexaura::costs {

constexpr double seconds_of_launch = 3e-7;
// The time by which calling a oneDNN primitive takes longer than starting a loop of ours.
constexpr double seconds_of_library_call = 4e-7;

constexpr double bytes_of_memory = 2e10;
constexpr double bytes_of_portable_kernels = 2e9;
constexpr double bytes_of_reorders = 1e10;
constexpr double traffic_of_tables = 4;  // bytes moved per byte copied: such a copy also reads its tables
// Bytes moved for each byte of x and y: batch norm reads its input twice.
constexpr double traffic_of_batch_norm = 1.5;

// Floating-point operations of matrix products and convolutions. Operations on padding count too.
constexpr double operations = 2e11;
// A small product runs on one thread, which uses few registers.
constexpr double operations_of_small_products = 8e10;
// Vectors of 8 channels use half of the widest registers.
constexpr double operations_on_8_lanes = 1.6e11;
// Speeds of a convolution that first copies its source to a matrix: elements copied per second, and
// floating-point operations per second on the matrix.
constexpr double copied_elements = 2.5e9;
constexpr double operations_on_columns = 5e10;

}  // namespace plexaura::costs
