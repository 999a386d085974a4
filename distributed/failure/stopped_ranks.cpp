#include "distributed/failure/stopped_ranks.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "core/base/print.h"

namespace plexaura {

std::vector<int> stopped_ranks(const Topology& topology) {
  std::vector<int> stopped;
  std::ranges::copy_if(topology.own_node_ranks(), std::back_inserter(stopped),
                       [&](int rank) { return topology.is_stopped(rank); });
  return stopped;
}

void kill_stopped(const Topology& topology, const std::vector<int>& absent) {
  const auto is_absent = [&](int rank) { return std::ranges::find(absent, rank) != absent.end(); };
  const std::vector<int>& here = topology.own_node_ranks();
  const int own = here[static_cast<std::size_t>(topology.own_node_rank())];
  const auto speaker =
      std::ranges::find_if(here, [&](int rank) { return !is_absent(rank) && !topology.is_dead(rank); });
  if (speaker == here.end() || *speaker != own) return;
  for (const int other : here)
    if (is_absent(other) && topology.kill_if_stopped(other))
      print_error(fmt::format(
          "{} is stopped (SIGSTOP or Ctrl-Z), and did not come within the deadline: rank {} has killed it",
          topology.name(other), topology.number(own)));
}

}  // namespace plexaura
