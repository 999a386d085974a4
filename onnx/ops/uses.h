#pragma once

#include <map>
#include <set>
#include <string>

#include "onnx/format/proto.h"

namespace plexaura::onnx {

// The ways in which the nodes of a file use a value, directly or through the values that they compute from it.
struct ValueUses {
  bool has_gradient = false;  // an output depends on the value through ops that have a gradient
  // The value must be known when the graph is built, as a shape or a scale must.
  bool is_needed_early = false;
  bool is_moment = false;  // the value is a running moment of batch norm
};

// Returns the uses of all values of a graph and of the graphs within it. Values of several graphs with one name have the
// uses of all of them.
std::map<std::string, ValueUses> uses_of_values(const GraphProto& graph);

// Returns the names of `value` and of all values on whose elements the elements of `value` depend. `value` may belong
// to a graph within the graph.
std::set<std::string> values_needed_for(const GraphProto& graph, const std::string& value);

}  // namespace plexaura::onnx
