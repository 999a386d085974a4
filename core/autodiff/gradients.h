#pragma once

#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// Appends to the graph the gradient of a scalar `loss` with respect to each node of `wrt`, times `seed` (a
// scalar of the loss' dtype; empty stands for 1). Returns one node per entry, of its type. What comes back is
// ordinary graph: gradients of gradients are second derivatives.
//
// Throws UserError, naming the nodes, when the loss is not a floating scalar, when an entry is not floating,
// when the loss does not depend on it, or when the seed is of another type.
PLEXAURA_API std::vector<Node> gradients(Node loss, std::span<const Node> wrt, Node seed = {});
PLEXAURA_API std::vector<Node> gradients(Node loss, std::initializer_list<Node> wrt, Node seed = {});

// The same, but an empty Node for an entry on which the loss does not depend or that no gradient reaches.
PLEXAURA_API std::vector<Node> gradients_or_empty(Node loss, std::span<const Node> wrt, Node seed = {});

}  // namespace plexaura
