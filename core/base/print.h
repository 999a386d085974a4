#pragma once

#include <string>
#include <string_view>

#include "core/base/export.h"

namespace plexaura {

// The text with every control character, and every byte that is no UTF-8, in the notation \x1b, as a file's name
// may hold them: a terminal shows it as it is, on one line.
PLEXAURA_API std::string printable(std::string_view text);

// Writes a line to the standard error output. Where that is closed or full nobody can be told: the line is
// lost, and the program goes on.
PLEXAURA_API void print_error(std::string_view line) noexcept;

// Writes a text to the standard output, and does not return before the system has it. Throws UserError where
// it cannot be written.
PLEXAURA_API void print_output(std::string_view text);

}  // namespace plexaura
