#pragma once

#include "distributed/sums/part_exchange.h"
#include "distributed/sums/sum_algorithm.h"

namespace plexaura {

// `hierarchical`: in sum(), the ranks of a node add arrays that lie in shared memory, then nodes exchange messages. In
// reduce_scatter() and all_gather(), and for arrays outside shared memory, all ranks exchange messages.
class HierarchicalSum final : public SumAlgorithm {
 public:
  explicit HierarchicalSum(const SumMeans& means);

  bool keeps_order() const override { return true; }
  void reduce_scatter(const CallSignature& call, std::byte* data) override;
  void all_gather(const CallSignature& call, std::byte* data) override;
  void sum(const CallSignature& call, std::byte* data, std::span<std::byte* const> windows) override;

 private:
  ShmRendezvous* rendezvous_;
  PartExchange ranks_;
  PartExchange nodes_;
};

}  // namespace plexaura
