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

// Describes a node of the graph from which `program` was compiled. Also describes the instruction and the
// kernel of the program that compute the node, and the other nodes that the same instruction computes.
// Compiling keeps no record of a node. So the node is recognised in the program by its op, options, types and
// origin. If graph and program have different numbers of such nodes, the text says so instead.
PLEXAURA_API std::string explain(const Node& node, const Program& program);

}  // namespace plexaura
