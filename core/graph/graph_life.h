#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/export.h"

namespace plexaura {

class Graph;

// Tells nodes whether their graph still lives. It belongs to one graph at a time, each with a generation of its own, and
// is never destroyed.
class PLEXAURA_API GraphLife {
 public:
  // One that belongs to `graph` until end().
  static GraphLife& begin(Graph& graph);
  void end();

  std::uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }
  // Null where the graph of this generation is gone.
  Graph* graph_of(std::uint32_t generation) const {
    return generation == this->generation() ? graph_ : nullptr;
  }

 private:
  GraphLife() = default;

  Graph* graph_ = nullptr;
  std::atomic<std::uint32_t> generation_ = 0;
};

}  // namespace plexaura
