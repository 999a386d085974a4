#pragma once

#include "core/graph/node.h"
#include "core/params/module.h"

// Layers are modules that take one value and give one. They have a namespace of their own, because ops have
// the same names: plexaura::Conv2d is the op, layers::Conv2d declares weights and uses it.
namespace plexaura::layers {

// A named layer keeps nothing of a call, and the graph nothing of the layer: several threads may call it at
// once, each with a graph of its own, and the layer may go before the graph does.
class Layer : public Module {
 public:
  // Extends the graph of x, which must be a Node. Errors name the place that x was written at.
  virtual Node operator()(Operand x) = 0;
};

}  // namespace plexaura::layers
