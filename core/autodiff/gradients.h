#pragma once

#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// Appends to the graph, for each node of `wrt`, the sum over all outputs of the derivatives of the output's elements by
// the node, each times its element of the output's cotangent. Returns one node per entry of `wrt`, of its type; an empty
// one stands for zero, where no output depends on the entry or no gradient reaches it. `cotangents` has one node per
// output, of the output's type; an empty one stands for zero. Only reverse mode is offered. What comes back is ordinary
// graph, and may be differentiated again.
//
// Throws UserError, naming the nodes, when there is no output, when the numbers of outputs and cotangents differ, when a
// cotangent is of another type than its output, when an output or an entry is not floating, when they belong to
// different graphs, or when an output was saved by its op for the op's own gradient.
PLEXAURA_API std::vector<Node> vjp(std::span<const Node> outputs, std::span<const Node> cotangents,
                                   std::span<const Node> wrt);

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
