#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/tensor/dtype.h"

namespace plexaura::fast {

// The innermost loops of elementwise ops on other dtypes than float32, made from the functors of ops.def: arithmetic,
// comparisons and, for float64, functions of DoubleMath. Arithmetic and comparisons have the bits of the reference
// kernels, except that a sum of products may be rounded once.

// Computes y[i] from element i of each operand, for i from 0 to count - 1. `options` are the values of the op's
// FunctionOptions.
using TypedLoop = void (*)(const std::byte* const* operands, std::byte* y, std::int64_t count,
                           const double* options);

struct TypedLoops {
  std::string_view name;
  DType dtype;           // dtype of the operands
  std::size_t operands;  // number of operands: 1 or 2
  TypedLoop loop;
};

// Returns the loops of an op, or null if it has none for this dtype.
const TypedLoops* find_typed(std::string_view op, DType dtype);

// Copies the bits of a[i] where the condition is true, and those of b[i] elsewhere. The operands are the condition
// (bool), a and b. An element of a and b has 1, 2, 4 or 8 bytes.
TypedLoop where_loop(std::size_t bytes);

}  // namespace plexaura::fast
