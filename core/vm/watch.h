#pragma once

#include <functional>
#include <string>

#include "core/base/export.h"
#include "core/compile/program.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// Checks and descriptions of values and instructions, for runs with `watch` or a profile.

PLEXAURA_API bool all_finite(const Tensor& tensor);
// True if the tensor, of a floating dtype, has elements and all of them are 0 or -0.
PLEXAURA_API bool all_zero(const Tensor& tensor);
PLEXAURA_API std::string first_bad(const Tensor& tensor);  // such as "NaN at element 17"

// Throws UserError if an output of the instruction, which has just run, is not finite. The message has the instruction's
// name, the element, and the ranges of its floating inputs that still exist. `read` returns a value in logical layout.
void check_finite(const Instruction& instruction, const std::function<Tensor(const Slot&)>& read);

// Returns a text with shapes, GB/s and, for convolutions and matmuls, GFLOP/s. `microseconds` is the duration of the
// instruction.
PLEXAURA_API std::string detail_of(const Program& program, const Instruction& instruction,
                                   double microseconds);

}  // namespace plexaura
