#include "core/compile/cheapest.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace plexaura {

const Candidate& cheapest(Backend& backend, Tuner* tuner, const RegionQuery& query,
                          std::span<const Candidate> candidates,
                          const std::function<double(const Candidate&)>& seconds_beside) {
  const Candidate* best = &*std::ranges::min_element(candidates, {}, [&](const Candidate& candidate) {
    return candidate.seconds + seconds_beside(candidate);
  });
  if (tuner == nullptr) return *best;
  std::vector<Candidate> peers;
  std::vector<const Candidate*> originals;
  for (const Candidate& candidate : candidates)
    if (candidate.outputs == best->outputs) {
      peers.push_back(candidate);
      originals.push_back(&candidate);
    }
  if (peers.size() == 1) return *best;
  const std::vector<double> seconds = tuner->seconds(backend, query, peers);
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < seconds.size(); ++i)
    if (const double cost = seconds[i] + seconds_beside(peers[i]); cost < least) {
      least = cost;
      best = originals[i];
    }
  return *best;
}

}  // namespace plexaura
