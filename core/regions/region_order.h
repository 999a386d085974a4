#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"
#include "core/graph/uses.h"

namespace plexaura {

// Maintains a topological order of a graph while its nodes are joined into regions, one region after the
// other. A join looks only at nodes that lie in this order between the first and the last node of the region,
// and that depend on the region or feed it. This is the dynamic topological order of Pearce and Kelly (2006).
// So the work grows with the sizes of the regions and not with the size of the graph.
class PLEXAURA_API RegionOrder {
 public:
  // The graph and its uses must outlive this object. Each collective op depends on the one before it in the
  // graph.
  RegionOrder(const Graph& graph, const Uses& uses);

  // Joins the nodes into one region. None of them may belong to a region already. Returns false, and changes
  // nothing, if a path leads out of the region and back into it.
  bool join(std::span<const NodeId> nodes);

  // Returns the number of groups that all joins together have visited. A group is a region or a single node.
  std::int64_t visits() const { return visits_; }

 private:
  using Group = NodeId;  // the node of a single node, or the first node of a region
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
  std::vector<Group> group_of_;               // one for each node
  std::vector<std::vector<NodeId>> members_;  // one for each group
  std::vector<std::size_t> position_;         // one for each group
  std::vector<Mark> marks_;                   // one for each group; set only during a join
  std::vector<Group> region_, behind_, before_;
  std::vector<NodeId> collectives_;
  std::int64_t visits_ = 0;
};

}  // namespace plexaura
