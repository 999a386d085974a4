#pragma once

#include <cstdint>
#include <memory>

#include "core/graph/node.h"
#include "core/params/module.h"

namespace plexaura::layers {

// A layer for sequences whose positions come one by one. Its members are buffers, which the graph updates, with what it
// needs of the positions before. They must be in the store of the layer's weights. The object refers to the layer, which
// must outlive it.
class IncrementalLayer : public Module {
 public:
  // x [N, 1, ...] is position number `position`, int64 [], of N sequences. Returns the same position of the layer's output for
  // the whole sequences, [N, 1, ...]. A new sequence starts at position 0, and positions must not be left out.
  virtual Node next(Operand x, Operand position) const = 0;
};

// A module with one input and one output. After its parameters are named, a call changes nothing in the
// layer, and the graph does not refer to the layer. So several threads may call it at the same time, each
// with its own graph, and the layer may be destroyed before the graph.
class Layer : public Module {
 public:
  // Extends the graph of x, which must be a Node. Errors name the source line where x was passed.
  virtual Node operator()(Operand x) const = 0;

  // Returns this layer for `samples` sequences of at most `positions` positions that come one by one. Null: the layer cannot
  // compute a position from those up to it.
  virtual std::unique_ptr<IncrementalLayer> incremental(std::int64_t /*samples*/,
                                                        std::int64_t /*positions*/) const {
    return nullptr;
  }
};

// Returns `layer`, which computes each position of a sequence alone, as a linear layer does. It has no buffers.
std::unique_ptr<IncrementalLayer> incremental_by_position(const Layer& layer);

}  // namespace plexaura::layers
