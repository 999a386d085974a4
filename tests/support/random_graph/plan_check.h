#pragma once

#include <string>

#include "core/compile/program.h"

namespace plexaura::testing {

// Follows a run of a program and checks that each value still lies in the arena when an instruction reads it, and that the
// outputs lie there at the end. Does the same for the bodies of loops. Returns a sentence for the first value that another
// one has overwritten, and an empty text if there is none.
std::string overwritten_value(const Program& program);

}  // namespace plexaura::testing
