#include "distributed/sums/hierarchical_sum.h"

namespace plexaura {

HierarchicalSum::HierarchicalSum(const SumMeans& means)
    : rendezvous_(means.rendezvous), ranks_(means), nodes_(means, means.topology.by_node()) {}

void HierarchicalSum::reduce_scatter(const CallSignature& call, std::byte* data) {
  ranks_.reduce(call, std::span(&data, 1));
}

void HierarchicalSum::all_gather(const CallSignature& call, std::byte* data) {
  ranks_.gather(call, std::span(&data, 1));
}

void HierarchicalSum::sum(const CallSignature& call, std::byte* data, std::span<std::byte* const> windows) {
  if (windows.empty()) return ranks_.sum(call, std::span(&data, 1));
  nodes_.sum(call, windows);
  rendezvous_->barrier(call);
}

}  // namespace plexaura
