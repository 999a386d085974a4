#pragma once

#include "core/base/export.h"
#include "core/tensor/host_view.h"

namespace plexaura {

// Checks of operands that are indices.

// Throws RuleError unless the indices are int64.
void require_indices(const TensorType& indices);

// Throws UserError, which names the first wrong index, unless all indices are from 0 to extent - 1.
PLEXAURA_API void require_inside(const HostView& indices, std::int64_t extent);

}  // namespace plexaura
