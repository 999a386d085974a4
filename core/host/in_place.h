#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// (output, input) pairs of an op whose host kernel may write the output where the input lies: those of one type,
// of ops that say they are elementwise. (A broadcast input has another shape, and so never qualifies.)
PLEXAURA_API std::vector<std::pair<std::size_t, std::size_t>> in_place_pairs(
    const Op& op, std::span<const TensorType> inputs, std::span<const TensorType> outputs);

}  // namespace plexaura
