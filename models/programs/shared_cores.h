#pragma once

#include <span>
#include <string>
#include <vector>

#include "distributed/communicator.h"

namespace plexaura {

// What a rank computes with.
struct RankCores {
  int rank = 0;
  int node = 0;  // as NodePlace counts them
  std::string host;
  int threads = 1;
  int cores_of_machine = 1;
  std::vector<int> cores;  // that it may use, ascending
};

// The sentence that tells which ranks of a host slow each other down, because they have fewer cores than threads, and
// what to do; of the first host where it is so. Empty where each thread has a core of its own.
std::string remark_on_shared_cores(std::span<const RankCores> ranks);

// The same of these ranks, to be called behind use_cores(). Collective.
std::string remark_on_shared_cores(Communicator& ranks);

}  // namespace plexaura
