#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "onnx/format/proto.h"
#include "onnx/ops/known.h"

#include "core/graph/graph.h"

namespace plexaura::onnx {

// The values of a graph by their names in the file.
using NamedNodes = std::map<std::string, Node, std::less<>>;

// The initialisers of a graph of a file, and of the graphs within it. Each is one node, however often a loop reads it.
using InitialiserNodes = std::map<const TensorProto*, Node>;

// The facts that all graphs of a file share.
struct FileFacts {
  std::string file;              // name of the file, for messages
  std::filesystem::path folder;  // folder of the model; empty if no files may be read
  OpsetVersions opsets;
};

// Throws UserError that lists all ops which are not supported, each with the names of its nodes, in this graph and
// in the graphs within it.
void check_ops(const GraphProto& graph, const FileFacts& facts);

// Adds the nodes of a graph of a file to `graph` and returns its outputs.
// A branch whose condition is known takes the place of its node, and a loop becomes the nodes of all its iterations.
// Values that depend only on constants are computed at once, within the limits. Throws UserError that names the file and
// the node, and UnknownValue if a shape or another value that is needed now is only computed later.
std::vector<Node> build_graph(Graph& graph, const GraphProto& proto, NamedNodes inputs,
                              const InitialiserNodes& initialisers, const FileFacts& facts,
                              const BuildLimits& limits = {});

}  // namespace plexaura::onnx
