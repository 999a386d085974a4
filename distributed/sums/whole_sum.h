#pragma once

#include "distributed/sums/part_exchange.h"
#include "distributed/sums/sum_algorithm.h"

namespace plexaura {

// An algorithm in which every rank gets all sums. Its reduce_scatter() computes all sums, too.
class WholeSum : public SumAlgorithm {
 public:
  explicit WholeSum(const SumMeans& means) : parts_(means) {}

  void reduce_scatter(const CallSignature& call, std::byte* data) final { sum(call, data, {}); }
  void all_gather(const CallSignature& call, std::byte* data) final {
    parts_.gather(call, std::span(&data, 1));
  }

 private:
  PartExchange parts_;
};

}  // namespace plexaura
