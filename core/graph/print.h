#pragma once

#include <string>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// Returns a line for each node, also of subgraphs, and for each update: "%7 = matmul(%3, %5) {transpose_b=true} :
// float32[4,20]   # models/iris.yaml:9:5 (hidden1)".
PLEXAURA_API std::string to_text(const Graph& graph);

// Returns a graph for graphviz: scopes are clusters, edges of saved outputs are dashed, and those of
// updates are dotted.
PLEXAURA_API std::string to_dot(const Graph& graph);

// Returns the name of a node in messages: "matmul %7 of models/iris.yaml:9:5".
PLEXAURA_API std::string name_of(const Graph& graph, NodeId id);

}  // namespace plexaura
