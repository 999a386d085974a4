#pragma once

#include <cstdint>

#include "onnx/format/proto.h"

namespace plexaura::onnx {

// A small file can describe functions that call each other so often that their nodes fill any memory. A file whose calls
// become more than this is an error.
struct InlineLimits {
  std::int64_t nodes = 100'000;
  std::int64_t bytes = std::int64_t{1} << 28;  // of names and attributes, not counting tensors
};

// Replaces each node that calls a function of the file by the nodes of this function, in the graph and in the graphs
// within it, and removes the functions. The values within a function get names that no other value has, and its nodes
// the names CALL/NODE, in which the number of a node stands for a name that it does not have. Copies of a node share its
// tensors. A function takes the place of an op of the standard with its name. Throws UserError that names the node.
void inline_functions(ModelProto& model, const InlineLimits& limits = {});

}  // namespace plexaura::onnx
