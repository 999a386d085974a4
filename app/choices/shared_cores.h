#pragma once

#include <span>
#include <string>
#include <vector>

#include "distributed/communicator/communicator.h"

namespace plexaura {

// The cores and threads of a rank.
struct RankCores {
  int rank = 0;  // number of the rank among all ranks, including ranks that serve
  int node = 0;  // number of the host, as in NodePlace
  std::string host;
  int threads = 1;
  int cores_of_machine = 1;
  // The cores that the rank may use, ascending. Empty if they are not known, or if the rank computes on a
  // device.
  std::vector<int> cores;
};

// Returns a sentence about the first host on which ranks slow each other down because they share cores and
// have more threads than cores, and says what to do. Returns an empty text if there is no such host. Leaves
// out hosts with a rank whose RankCores::cores is empty.
std::string remark_on_shared_cores(std::span<const RankCores> ranks);

// Returns the remark on the cores of the ranks of `ranks`. Called after use_cores(). Also leaves out hosts on which
// OpenMP has bound the threads of a rank to cores. `number` is the number of this rank among all ranks. Collective.
std::string remark_on_shared_cores(Communicator& ranks, int number, bool computes_on_cpu);

}  // namespace plexaura
