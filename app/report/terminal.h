#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace plexaura {

// Columns of the terminal on which a person sees this program's output; 0 where it goes to a file or a pipe.
// mpirun gives the ranks terminals of its own, which have no size: there its own output counts.
std::size_t terminal_columns();

// Goes back to the beginning of the terminal's line and clears it.
inline constexpr const char* clear_line = "\r\033[K";

// "[=====>    ]"
std::string progress_bar(std::int64_t done, std::int64_t all);

}  // namespace plexaura
