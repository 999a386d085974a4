#include "core/graph/graph_life.h"

#include <cstddef>
#include <mutex>
#include <vector>

namespace plexaura {

namespace {

// The objects that belong to no graph now. The object of this struct is never destroyed, since a Node may outlive
// everything that is destroyed at the end of a process.
struct IdleLives {
  std::mutex mutex;
  std::vector<GraphLife*> lives;  // its capacity suffices for all objects
  std::size_t all = 0;            // number of idle objects and of objects in use
};

IdleLives& idle_lives() {
  static IdleLives* const idle = new IdleLives;
  return *idle;
}

}  // namespace

GraphLife& GraphLife::begin(Graph& graph) {
  IdleLives& idle = idle_lives();
  const std::lock_guard lock(idle.mutex);
  if (idle.lives.empty()) {
    // Reserves memory here, since end() must not throw.
    if (idle.lives.capacity() <= idle.all) idle.lives.reserve(2 * idle.all + 8);
    idle.lives.push_back(new GraphLife);
    ++idle.all;
  }
  GraphLife& life = *idle.lives.back();
  idle.lives.pop_back();
  life.graph_ = &graph;
  return life;
}

void GraphLife::end() {
  generation_.fetch_add(1, std::memory_order_relaxed);
  IdleLives& idle = idle_lives();
  const std::lock_guard lock(idle.mutex);
  idle.lives.push_back(this);
}

}  // namespace plexaura
