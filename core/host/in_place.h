#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// Returns the pairs (output, input) of an op whose host kernel may write the output over the input. These are
// the pairs of the same type, if the op is elementwise. A broadcast input has another shape, so it is never
// among them.
PLEXAURA_API std::vector<std::pair<std::size_t, std::size_t>> in_place_pairs(
    const Op& op, std::span<const TensorType> inputs, std::span<const TensorType> outputs);

}  // namespace plexaura
