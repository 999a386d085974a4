#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/export.h"

namespace plexaura {

class Graph;

// Tells a Node whether its graph still lives. The object belongs to one graph at a time, and has a new
// generation for each. It is never destroyed, so a Node may refer to it for ever.
class PLEXAURA_API GraphLife {
 public:
  // Returns an object that belongs to `graph` until end().
  static GraphLife& begin(Graph& graph);
  void end();

  std::uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }
  // Returns the graph of this generation. Returns null if it was destroyed.
  Graph* graph_of(std::uint32_t generation) const {
    return generation == this->generation() ? graph_ : nullptr;
  }

 private:
  GraphLife() = default;

  Graph* graph_ = nullptr;
  std::atomic<std::uint32_t> generation_ = 0;
};

}  // namespace plexaura
