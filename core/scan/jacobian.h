#pragma once

#include <source_location>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// Appends to the graph all derivatives of `output` [A...] with respect to `wrt` [B...]: [A..., B...], of the output's
// dtype. Zeros if the output does not depend on `wrt`. It is a scan with one vjp for each element of the output, so that
// the size of the program does not depend on the number of elements.
//
// Throws UserError as vjp() does, and if `wrt` has another dtype than the output.
PLEXAURA_API Node jacobian(const Node& output, const Node& wrt,
                           std::source_location where = std::source_location::current());

// Appends all second derivatives of a scalar `loss` with respect to `wrt` [B...]: [B..., B...], of the dtype of `wrt`. It is
// the jacobian() of the gradient; zeros if the gradient does not depend on `wrt`. Throws as gradients_or_empty() does.
PLEXAURA_API Node hessian(const Node& loss, const Node& wrt,
                          std::source_location where = std::source_location::current());

}  // namespace plexaura
