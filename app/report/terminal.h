#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace plexaura {

// Returns the columns of the terminal on which the user reads this program's output; 0 if it goes to a file
// or a pipe. mpirun gives the ranks terminals without a size, so under mpirun its own output is examined.
std::size_t terminal_columns();

// The control sequence that moves to the beginning of the terminal's line and clears it.
inline constexpr const char* clear_line = "\r\033[K";

// Returns a text such as "[=====>    ]".
std::string progress_bar(std::int64_t done, std::int64_t all);

}  // namespace plexaura
