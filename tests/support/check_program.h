#pragma once

#include <string>

#include "core/compile/program.h"

namespace plexaura::testing {

// Follows the arena of a program from instruction to instruction. Every value must still be there completely
// when it is read, and outputs at the end. The workspace of an instruction must not overlap its inputs and outputs. Returns
// a line for each mistake, or "".
std::string check_arena(const Program& program);

}  // namespace plexaura::testing
