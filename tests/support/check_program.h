#pragma once

#include <string>

#include "core/compile/program.h"

namespace plexaura::testing {

// Follows the arena of a program from instruction to instruction: every value must still lie there, whole,
// when it is read, and outputs at the end. Says what was overwritten by what; empty where nothing was.
std::string check_arena(const Program& program);

}  // namespace plexaura::testing
