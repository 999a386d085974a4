#include "core/regions/select_regions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <set>

#include "core/base/error.h"
#include "core/regions/region_order.h"

namespace plexaura {

namespace {

constexpr std::size_t nobody = static_cast<std::size_t>(-1);

class Selection {
 public:
  Selection(const Graph& graph, std::span<const Value> kept)
      : graph_(graph), uses_(graph, kept), order_(graph, uses_), owner_(graph.size(), nobody) {
    for (NodeId id = 0; id < graph.size(); ++id)
      if (graph.record(id).op->traits().collective) collectives_.push_back(id);
  }

  void fuse(const Backend& backend) {
    std::vector<Offer> offers = offers_of(backend);
    std::ranges::stable_sort(offers, std::ranges::greater{}, &Offer::saving);
    for (Offer& offer : offers)
      if (is_free(offer.region) && order_.join(offer.region.nodes)) take(std::move(offer.region));
  }

  void take_the_rest() {
    for (NodeId id = static_cast<NodeId>(graph_.size()); id-- > 0;)
      if (owner_[id] == nobody && as_leaf(*graph_.record(id).op) == nullptr) take(single(graph_, id));
  }

  // Orders the regions with Kahn's algorithm. Among the regions that are ready, the one whose last node comes
  // first in the graph goes first. Collective ops keep their order.
  std::vector<Region> in_order() && {
    std::vector<std::set<std::size_t>> followers(regions_.size());
    std::vector<std::size_t> missing(regions_.size(), 0);
    for (std::size_t reader = 0; reader < regions_.size(); ++reader)
      for (const Value input : regions_[reader].inputs) {
        const std::size_t producer = owner_[input.node];
        if (producer != nobody && followers[producer].insert(reader).second) ++missing[reader];
      }
    for (std::size_t i = 1; i < collectives_.size(); ++i)
      if (const std::size_t earlier = owner_[collectives_[i - 1]], later = owner_[collectives_[i]];
          earlier != later && followers[earlier].insert(later).second)
        ++missing[later];
    using Entry = std::pair<NodeId, std::size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    const auto enqueue = [&](std::size_t region) { ready.emplace(regions_[region].nodes.back(), region); };
    for (std::size_t region = 0; region < regions_.size(); ++region)
      if (missing[region] == 0) enqueue(region);
    std::vector<Region> ordered;
    while (!ready.empty()) {
      const std::size_t next = ready.top().second;
      ready.pop();
      for (const std::size_t follower : followers[next])
        if (--missing[follower] == 0) enqueue(follower);
      ordered.push_back(std::move(regions_[next]));
    }
    if (ordered.size() != regions_.size()) throw InternalError("regions of a program wait for each other");
    return ordered;
  }

 private:
  struct Offer {
    Region region;
    double saving;  // estimated seconds that the region saves
  };

  // Returns the regions that may be taken and are not slower than their nodes, from the end of the graph on.
  std::vector<Offer> offers_of(const Backend& backend) const {
    std::map<NodeId, double> seconds_of_node;
    const auto alone = [&](NodeId id) {
      const auto [known, is_new] = seconds_of_node.emplace(id, 0);
      if (is_new) known->second = seconds_of(backend, single(graph_, id));
      return known->second;
    };
    std::vector<Offer> offers;
    for (NodeId id = static_cast<NodeId>(graph_.size()); id-- > 0;) {
      if (as_leaf(*graph_.record(id).op) != nullptr) continue;
      for (Region& region : backend.regions(graph_, id, uses_)) {
        if (!is_closed(region)) continue;
        const double fused = seconds_of(backend, region);
        double apart = 0;
        for (const NodeId node : region.nodes) apart += alone(node);
        if (std::isfinite(fused) && fused <= apart) offers.push_back({std::move(region), apart - fused});
      }
    }
    return offers;
  }

  // Returns the seconds of the best candidate, before any layout is chosen; infinite if there is no
  // candidate.
  double seconds_of(const Backend& backend, const Region& region) const {
    RegionQuery query{graph_, region, {}, {}};
    query.given.resize(region.inputs.size());
    for (const Value output : region.outputs)
      query.wanted.push_back(uses_.kept(output) || !uses_.readers(output).empty());
    double best = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : backend.propose(query)) best = std::min(best, candidate.seconds);
    return best;
  }

  bool is_free(const Region& region) const {
    return std::ranges::all_of(region.nodes, [&](NodeId id) { return owner_[id] == nobody; });
  }

  // Returns true if the region hides its inner values, which are the values of its nodes that are not its
  // outputs: no node outside of the region reads one, and none is an output or an update of the program.
  bool is_closed(const Region& region) const {
    for (const NodeId id : region.nodes)
      for (std::uint32_t output = 0; output < graph_.record(id).types.size(); ++output) {
        const Value value{id, output};
        if (std::ranges::find(region.outputs, value) != region.outputs.end()) continue;
        const auto inside = [&](NodeId reader) {
          return std::ranges::find(region.nodes, reader) != region.nodes.end();
        };
        if (uses_.kept(value) || !std::ranges::all_of(uses_.readers(value), inside)) return false;
      }
    return true;
  }

  void take(Region region) {
    for (const NodeId id : region.nodes) owner_[id] = regions_.size();
    regions_.push_back(std::move(region));
  }

  const Graph& graph_;
  Uses uses_;
  RegionOrder order_;
  std::vector<std::size_t> owner_;  // the index of each node's region
  std::vector<Region> regions_;
  // Collective ops, which run in this order on every rank, whatever regions the rank has.
  std::vector<NodeId> collectives_;
};

}  // namespace

std::vector<Region> select_regions(const Graph& graph, std::span<const Value> kept, const Backend& backend,
                                   bool fuse) {
  Selection selection(graph, kept);
  if (fuse) selection.fuse(backend);
  selection.take_the_rest();
  return std::move(selection).in_order();
}

}  // namespace plexaura
