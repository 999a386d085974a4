#pragma once

#include "core/base/export.h"
#include "core/tensor/host_view.h"

namespace plexaura {

// For ops that have indices as an operand.

// Throws RuleError unless the indices are int64.
void require_indices(const TensorType& indices);

// Throws UserError, which names the first wrong index, unless all are from 0 to extent - 1.
PLEXAURA_API void require_inside(const HostView& indices, std::int64_t extent);

}  // namespace plexaura
