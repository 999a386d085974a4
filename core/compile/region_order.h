#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"
#include "core/graph/uses.h"

namespace plexaura {

// A topological order of a graph while more and more of its nodes are joined into regions. A join looks only at the nodes that lie
// between the first and the last one of the region in this order and depend on the region, or the region on them: the dynamic
// topological order of Pearce and Kelly (2006). So the work grows with the sizes of regions, not with that of the graph.
class PLEXAURA_API RegionOrder {
 public:
  // The graph and its uses must outlive the order. Collectives depend on each other in the order of the graph.
  RegionOrder(const Graph& graph, const Uses& uses);

  // Joins the nodes into one region; each must still be alone. False, and nothing changes, if a path leads out of the region and
  // back into it.
  bool join(std::span<const NodeId> nodes);

  // How many groups of nodes all joins together have visited.
  std::int64_t visits() const { return visits_; }

 private:
  using Group = NodeId;  // the first node of a region that was joined, or a single node
  enum class Mark : std::uint8_t { none, region, behind, before };

  template <class F>
  void for_each_reader(Group group, F&& visit) const;
  template <class F>
  void for_each_producer(Group group, F&& visit) const;
  bool find_behind(std::size_t last);
  void find_before(std::size_t first);
  void rearrange();
  void clear_marks();
  void sort_by_position(std::vector<Group>& groups) const;

  const Graph& graph_;
  const Uses& uses_;
  std::vector<Group> group_of_;               // of each node
  std::vector<std::vector<NodeId>> members_;  // of each group
  std::vector<std::size_t> position_;         // of each group
  std::vector<Mark> marks_;                   // of each group, while it is joined
  std::vector<Group> region_, behind_, before_;
  std::vector<NodeId> collectives_;
  std::int64_t visits_ = 0;
};

}  // namespace plexaura
