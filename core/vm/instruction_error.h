#pragma once

#include "core/compile/program.h"

namespace plexaura {

// Rethrows the current exception. Puts the instruction's name before the text of a UserError, and of an exception
// that is no Error, which becomes a DeviceError.
[[noreturn]] void rethrow_as_of(const Instruction& instruction);

}  // namespace plexaura
