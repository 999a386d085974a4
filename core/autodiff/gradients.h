#pragma once

#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// Appends vector-Jacobian products to the graph: for each node of `wrt`, the sum over all outputs of the
// derivatives of the output's elements with respect to the node, each times the same element of the output's
// cotangent. Returns one node for each entry of `wrt`, with its type. A returned node is empty, which stands
// for zero, if no output depends on the entry or no gradient reaches it. `cotangents` has one node for each
// output, with its type; an empty one stands for zero. The results are nodes of the graph like any others,
// and may be differentiated again. There is no forward mode; jvp() of
// core/autodiff/products.h calls vjp() twice.
//
// Throws UserError, with the names of the nodes, if there is no output, if the numbers of outputs and
// cotangents differ, if a cotangent and its output have different types, if an output or an entry is not
// floating, if they belong to different graphs, or if an output was saved by its op for the op's own
// gradient.
PLEXAURA_API std::vector<Node> vjp(std::span<const Node> outputs, std::span<const Node> cotangents,
                                   std::span<const Node> wrt);
PLEXAURA_API std::vector<Node> vjp(std::initializer_list<Node> outputs,
                                   std::initializer_list<Node> cotangents, std::initializer_list<Node> wrt);

// Appends to the graph the gradient of a scalar `loss` with respect to each node of `wrt`, times `seed`: a
// scalar of the loss' dtype; empty stands for 1. Returns one node for each entry, with its type. The results
// may be differentiated again: gradients of gradients are second derivatives.
//
// Throws UserError, with the names of the nodes, if the loss is not a floating scalar, if an entry is not
// floating, if the loss does not depend on an entry or no gradient reaches it, or if the seed has another
// type.
PLEXAURA_API std::vector<Node> gradients(Node loss, std::span<const Node> wrt, Node seed = {});
PLEXAURA_API std::vector<Node> gradients(Node loss, std::initializer_list<Node> wrt, Node seed = {});

// Appends gradients as gradients() does, but returns an empty Node for an entry if the loss does not depend on it or no
// gradient reaches it.
PLEXAURA_API std::vector<Node> gradients_or_empty(Node loss, std::span<const Node> wrt, Node seed = {});

}  // namespace plexaura
