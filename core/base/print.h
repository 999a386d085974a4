#pragma once

#include <string>
#include <string_view>

#include "core/base/export.h"

namespace plexaura {

// Returns the text with all control characters, and all bytes that are not UTF-8, replaced by \x1b and the
// like. A terminal shows the result as it is, on one line, even if it contains the name of a file.
PLEXAURA_API std::string printable(std::string_view text);

// Writes a line to standard error. If that is closed or full, the line is lost, and the program continues.
PLEXAURA_API void print_error(std::string_view line) noexcept;

// Writes a text to standard output, and returns after the system has taken it. Throws UserError if it cannot
// be written.
PLEXAURA_API void print_output(std::string_view text);

}  // namespace plexaura
