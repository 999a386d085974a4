#pragma once

#include <string>
#include <vector>

#include "core/ranks/rank_lost.h"

namespace plexaura {

// mpirun ends a job with the first process that leaves in error, and the rank that reports the error has to have its
// sentence out by then.
void let_the_other_speak();

// Throws it as an error that another rank reports, a little later for that reason.
[[noreturn]] void throw_quietly(int reporting_rank, const DeviceError& error);
[[noreturn]] void throw_quietly(int reporting_rank, const UserError& error);
[[noreturn]] void throw_quietly(int reporting_rank, const RankLost& error);

// "rank 3", "ranks 1 and 3", "ranks 0, 1 and 3"
std::string list_ranks(const std::vector<int>& ranks);

}  // namespace plexaura
