#pragma once

#include <vector>

#include "core/vm/feed.h"
#include "testing/check_gradients.h"

namespace plexaura {

// Compares the gradients of a loss, or of any other floating node, with differences. `values` has the value of each input,
// parameter and buffer that the node needs, by name; the floating ones are float64, and gradients are checked with respect to
// all of these. Otherwise it does what check_gradients() of a function does: if a gradient is wrong, the report names the
// first op whose own gradient is wrong, and the line where it was written. It computes several gradients for each value, so
// it is meant for nets of a few small layers. The graph does not change.
//
// Throws UserError, with the name of the leaf, if a value is missing, is not needed, or has another type than its leaf.
GradientReport check_gradients(const Node& loss, const std::vector<Feed>& values, Backend& backend,
                               const GradientOptions& options = {});

}  // namespace plexaura
