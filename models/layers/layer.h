#pragma once

#include "core/graph/node.h"
#include "core/params/module.h"

namespace plexaura::layers {

// A module with one input and one output. After its parameters are named, a call changes nothing in the
// layer, and the graph does not refer to the layer. So several threads may call it at the same time, each
// with its own graph, and the layer may be destroyed before the graph.
class Layer : public Module {
 public:
  // Extends the graph of x, which must be a Node. Errors name the source line where x was passed.
  virtual Node operator()(Operand x) const = 0;
};

}  // namespace plexaura::layers
