#pragma once

#include "core/compile/program.h"

namespace plexaura {

// Throws the exception in flight again, with the name of the instruction that threw it.
[[noreturn]] void rethrow_as_of(const Instruction& instruction);

}  // namespace plexaura
