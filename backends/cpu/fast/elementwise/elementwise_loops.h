#pragma once

#include <cstdint>
#include <string_view>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// The innermost loops of the elementwise ops on float32, made from the functors of ops.def.

// `options` are the values of the op's FunctionOptions.
using UnaryLoop = void (*)(const float* x, float* y, std::int64_t count, const double* options);
// `y` is an array of bool for comparisons, and of float for all other ops.
using BinaryLoop = void (*)(const float* a, const float* b, void* y, std::int64_t count,
                            const double* options);

struct UnaryLoops {
  std::string_view name;
  UnaryLoop loop;
  double operations;  // approximate number of elementary operations for one element
};

struct BinaryLoops {
  std::string_view name;
  BinaryLoop both;      // reads two arrays
  BinaryLoop scalar_a;  // a has one element
  BinaryLoop scalar_b;
  double operations;
};

// Return null for an op that has no such loop.
const UnaryLoops* find_unary(std::string_view op);
const BinaryLoops* find_binary(std::string_view op);

// y > 0 ? grad : 0
PLEXAURA_CLONED void mask_loop(const float* y, const float* grad, float* result, std::int64_t count);

// y += x
PLEXAURA_CLONED void add_loop(const float* x, float* y, std::int64_t count);

}  // namespace plexaura::fast
