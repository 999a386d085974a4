#include "core/graph/graph_life.h"

#include <cstddef>
#include <mutex>
#include <vector>

namespace plexaura {

namespace {

// Those that belong to no graph now. Never destroyed: a Node may outlive whatever is destroyed at the end of a process.
struct IdleLives {
  std::mutex mutex;
  std::vector<GraphLife*> lives;  // with room for all
  std::size_t all = 0;            // of them and of those in use
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
    if (idle.lives.capacity() <= idle.all) idle.lives.reserve(2 * idle.all + 8);  // end() may not throw
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
