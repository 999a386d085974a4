#pragma once

#include <string>

#include "core/base/export.h"
#include "core/compile/program.h"

namespace plexaura {

// Describes a node in a few sentences: its op and options, its type, the values that it reads, the place where
// it was made, and the nodes that read it.
//
//   %3 is a matmul with transpose_a=false, transpose_b=true. It computes float32[2,3] from %0 (input x,
//   float32[2,4]) and %2 (parameter fc.weight, float32[3,4]). It was made at m.yaml:3:5 (fc). It is read by %4 (relu).
//
// Throws UserError if the node is empty or its graph was destroyed.
PLEXAURA_API std::string explain(const Node& node);

// The same for a node of the graph that `program` was compiled from, and the instruction and kernel that compute
// it with the nodes of its region. The passes keep no record of a node, so it is recognised by its op, options,
// types and origin. If the program has another number of such nodes than the graph, the text says so instead.
PLEXAURA_API std::string explain(const Node& node, const Program& program);

}  // namespace plexaura
