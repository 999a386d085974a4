#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/sums/sum_algorithm.h"

namespace plexaura {

// The names that make_sum_algorithm() knows: the values of distributed.algorithm.
const std::vector<std::string>& sum_algorithm_names();

// Those among them that can add the shards of ranks that are lost.
std::vector<std::string> sum_algorithms_of_shards();

// Null where there is one rank, and nothing to add. `auto` is `window` where all ranks share memory, and `hierarchical` elsewhere. Throws UserError for an unknown name, and
// where the ranks cannot work so.
std::unique_ptr<SumAlgorithm> make_sum_algorithm(std::string_view name, const SumMeans& means);

}  // namespace plexaura
