#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/sums/sum_algorithm.h"

namespace plexaura {

// Returns the names that make_sum_algorithm() knows: the values of distributed.algorithm.
const std::vector<std::string>& sum_algorithm_names();

// Returns the names of the algorithms that can add the shards of lost ranks.
std::vector<std::string> sum_algorithms_of_shards();

// Makes the algorithm with this name. Returns null if there is one rank, because there is nothing to add.
// `auto` is `window` if all ranks share memory, otherwise `hierarchical`. Throws UserError for an unknown
// name, and if the ranks cannot use the algorithm.
std::unique_ptr<SumAlgorithm> make_sum_algorithm(std::string_view name, const SumMeans& means);

}  // namespace plexaura
