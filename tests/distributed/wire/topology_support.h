#pragma once

#include <string>
#include <utility>
#include <vector>

#include "distributed/wire/topology.h"

namespace plexaura::testing {

// Returns a topology of ranks on these hosts, as seen from one of them. No rank can be found dead.
inline Topology on_hosts(const std::vector<std::string>& hosts, int own) {
  std::vector<ProcessPlace> places;
  for (const std::string& host : hosts) {
    places.push_back({host, 1, "unknown", "", static_cast<int>(places.size())});
  }
  return {std::move(places), own};
}

}  // namespace plexaura::testing
