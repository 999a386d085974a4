#pragma once

#include <cstdint>

#include "onnx/format/proto.h"

namespace plexaura::onnx {

// A small file can describe functions that call each other so often that their nodes fill any memory. If the calls of a
// file become more than this, inline_functions() throws UserError.
struct InlineLimits {
  std::int64_t nodes = 100'000;
  std::int64_t bytes = std::int64_t{1} << 28;  // bytes of names and attributes, not counting tensors
};

// Replaces each node that calls a function of the file by the nodes of this function, in the graph and in the graphs
// within it, and removes the functions. The values within a function get names that no other value has. Its nodes are
// named CALL/NODE, after the node that calls the function; a node without a name is named by its number. Copies of a node
// share its tensors. A function replaces the op of the standard that has the same name. Throws UserError, which
// names the node if one is the cause.
void inline_functions(ModelProto& model, const InlineLimits& limits = {});

}  // namespace plexaura::onnx
