#pragma once

#include <span>
#include <string>
#include <vector>

#include "distributed/communicator/communicator.h"

namespace plexaura {

// What a rank computes with.
struct RankCores {
  int rank = 0;  // as the user counts, with those that serve
  int node = 0;  // as NodePlace counts them
  std::string host;
  int threads = 1;
  int cores_of_machine = 1;
  // That it may use, ascending; none where that is not known, or where it computes on a device.
  std::vector<int> cores;
};

// The sentence that tells which ranks of a host slow each other down, because they share cores and have fewer of them
// than threads, and what to do; of the first host where it is so. Empty where it is so on none, and about hosts where a
// rank has no cores to tell.
std::string remark_on_shared_cores(std::span<const RankCores> ranks);

// The same of these ranks, to be called behind use_cores(). Nothing where OpenMP binds threads. Collective.
// `number`: of this rank among all.
std::string remark_on_shared_cores(Communicator& ranks, int number, bool computes_on_cpu);

}  // namespace plexaura
