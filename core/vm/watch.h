#pragma once

#include <functional>
#include <string>

#include "core/base/export.h"
#include "core/compile/program.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// What the observing run loop says about values and instructions.

PLEXAURA_API bool all_finite(const Tensor& tensor);
PLEXAURA_API std::string first_bad(const Tensor& tensor);  // "NaN at element 17"

// Throws UserError where an output of the instruction, which has just run, is not finite: with its name,
// the element, and the ranges of its inputs. `read` gets a value in logical layout.
void check_finite(const Instruction& instruction, const std::function<Tensor(const Slot&)>& read);

// Shapes, GB/s and, where the op is a product, GFLOP/s; `microseconds` is how long the instruction took.
PLEXAURA_API std::string detail_of(const Program& program, const Instruction& instruction,
                                   double microseconds);

}  // namespace plexaura
