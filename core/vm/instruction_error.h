#pragma once

#include "core/compile/program.h"

namespace plexaura {

// Throws the current exception again, and adds the name of the instruction that threw it to the text.
[[noreturn]] void rethrow_as_of(const Instruction& instruction);

}  // namespace plexaura
