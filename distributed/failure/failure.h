#pragma once

#include <string>
#include <vector>

#include "core/error.h"

namespace plexaura {

// Throws the DeviceError that another rank reports, a little later: mpirun ends a job with the first process
// that leaves, and the reporting rank has to have its sentence out by then.
[[noreturn]] void throw_quietly(int reporting_rank, const std::string& text);

// "rank 3", "ranks 1 and 3", "ranks 0, 1 and 3"
std::string list_ranks(const std::vector<int>& ranks);

}  // namespace plexaura
