#include "distributed/group/sum_algorithm.h"

namespace plexaura {

SumAlgorithm::~SumAlgorithm() = default;

void SumAlgorithm::sum(const CallSignature& call, std::byte* data) {
  reduce_scatter(call, data);
  all_gather(call, data);
}

}  // namespace plexaura
