#pragma once

// What the CPU is taken to do in a second where kernels are compared before any has run. Only the ratios
// matter, and they hold for one processor as for another within a factor of two.

namespace plexaura::costs {

constexpr double seconds_of_launch = 3e-7;
constexpr double seconds_of_library_call = 4e-7;  // what a primitive of oneDNN takes more than a loop of ours

constexpr double bytes_of_memory = 2e10;
constexpr double bytes_of_portable_kernels = 2e9;
constexpr double bytes_of_reorders = 1e10;
constexpr double traffic_of_tables = 4;        // a copy by tables reads more than the values
constexpr double traffic_of_batch_norm = 1.5;  // which reads its input twice

// Floating-point operations of matrix products and convolutions, those on padding included.
constexpr double operations = 2e11;
constexpr double operations_of_small_products = 8e10;  // on one thread, from few registers
// Vectors of 8 channels leave the widest registers half empty.
constexpr double operations_on_8_lanes = 1.6e11;
// A convolution that copies its source to a matrix first: the elements of that matrix, and the operations on it.
constexpr double copied_elements = 2.5e9;
constexpr double operations_on_columns = 5e10;

}  // namespace plexaura::costs
