#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// Products of derivatives and vectors, made of two vjp() each. Like the results of vjp(), the products are nodes of the
// graph and may be differentiated again.

// Appends Jacobian-vector products to the graph: for each output, the sum over all entries of `wrt` of the output's
// derivatives with respect to the entry's elements, each times the same element of the entry's tangent. Returns one node
// for each output, with its type. A returned node is empty, which stands for zero, if the output depends on no entry that
// has a tangent. `tangents` has one node for each entry, with its type; an empty one stands for zero. It takes two vjp(),
// so that the program computes the outputs once and about two more passes through their graph.
//
// Throws UserError, with the names of the nodes, if there is no output or no entry, if the numbers of entries and tangents
// differ, if a tangent and its entry have different types, and what vjp() throws.
PLEXAURA_API std::vector<Node> jvp(std::span<const Node> outputs, std::span<const Node> wrt,
                                   std::span<const Node> tangents);
PLEXAURA_API std::vector<Node> jvp(std::initializer_list<Node> outputs, std::initializer_list<Node> wrt,
                                   std::initializer_list<Node> tangents);

// Appends the product of the Hessian of a scalar `loss` and a vector: the gradient of the loss, differentiated along
// `vectors`, which has one node for each entry of `wrt`, with its type. Returns one node for each entry, with its type; empty,
// which stands for zero, if the gradient does not depend on the entry.
//
// Throws UserError if there is no entry, as gradients_or_empty() does for the loss and the entries, and as jvp() does for the
// vectors.
PLEXAURA_API std::vector<Node> hvp(const Node& loss, std::span<const Node> wrt,
                                   std::span<const Node> vectors);
PLEXAURA_API std::vector<Node> hvp(const Node& loss, std::initializer_list<Node> wrt,
                                   std::initializer_list<Node> vectors);

}  // namespace plexaura
