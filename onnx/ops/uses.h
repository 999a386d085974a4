#pragma once

#include <map>
#include <string>

#include "onnx/format/proto.h"

namespace plexaura::onnx {

// How the nodes of a file use a value, directly or through the values that they compute from it.
struct ValueUses {
  bool has_gradient = false;     // an output depends on it through ops that have a gradient by it
  bool is_needed_early = false;  // it must be known when the graph is built, as a shape or a scale must
  bool is_moment = false;        // it is a running moment of batch norm
};

// Returns the uses of all values that a graph reads. A value that is not there has none.
std::map<std::string, ValueUses> uses_of_values(const GraphProto& graph);

}  // namespace plexaura::onnx
