#pragma once

#include <string>

#include "core/export.h"
#include "core/tensor/tensor.h"
#include "core/vm/program.h"

namespace plexaura {

// What the observing run loop says about values and instructions.

PLEXAURA_API bool all_finite(const Tensor& tensor);
PLEXAURA_API std::string first_bad(const Tensor& tensor);  // "NaN at element 17"
std::string range_text(const Tensor& tensor);              // "[-3.2, 17]"

// Shapes, GB/s and, where the op is a product, GFLOP/s; `microseconds` is how long the instruction took.
std::string detail_of(const Program& program, const Instruction& instruction, double microseconds);

}  // namespace plexaura
