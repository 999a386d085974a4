#include "core/regions/region_order.h"

#include <algorithm>
#include <numeric>

namespace plexaura {

RegionOrder::RegionOrder(const Graph& graph, const Uses& uses)
    : graph_(graph),
      uses_(uses),
      group_of_(graph.size()),
      members_(graph.size()),
      position_(graph.size()),
      marks_(graph.size(), Mark::none) {
  std::iota(group_of_.begin(), group_of_.end(), Group{0});
  std::iota(position_.begin(), position_.end(), std::size_t{0});
  for (NodeId id = 0; id < graph.size(); ++id) {
    members_[id] = {id};
    if (graph.record(id).op->traits().collective) collectives_.push_back(id);
  }
}

bool RegionOrder::join(std::span<const NodeId> nodes) {
  region_.assign(nodes.begin(), nodes.end());
  sort_by_position(region_);
  for (const Group group : region_) marks_[group] = Mark::region;
  const std::size_t first = position_[region_.front()];
  const std::size_t last = position_[region_.back()];
  const bool joins = find_behind(last);
  if (joins) {
    find_before(first);
    rearrange();
  }
  clear_marks();
  return joins;
}

template <class F>
void RegionOrder::for_each_reader(Group group, F&& visit) const {
  for (const NodeId id : members_[group]) {
    for (std::uint32_t output = 0; output < graph_.record(id).types.size(); ++output)
      for (const NodeId reader : uses_.readers({id, output})) visit(group_of_[reader]);
    if (const auto next = std::ranges::upper_bound(collectives_, id);
        next != collectives_.end() && graph_.record(id).op->traits().collective)
      visit(group_of_[*next]);
  }
}

template <class F>
void RegionOrder::for_each_producer(Group group, F&& visit) const {
  for (const NodeId id : members_[group]) {
    for (const Value input : graph_.record(id).inputs) visit(group_of_[input.node]);
    if (const auto here = std::ranges::lower_bound(collectives_, id);
        here != collectives_.begin() && graph_.record(id).op->traits().collective)
      visit(group_of_[*std::prev(here)]);
  }
}

// Marks the groups, up to position `last`, that depend on the region. Returns false if one of these groups
// feeds the region.
bool RegionOrder::find_behind(std::size_t last) {
  std::vector<Group> open = region_;
  bool comes_back = false;
  while (!open.empty() && !comes_back) {
    const Group group = open.back();
    open.pop_back();
    ++visits_;
    for_each_reader(group, [&](Group reader) {
      comes_back = comes_back || (marks_[group] == Mark::behind && marks_[reader] == Mark::region);
      if (marks_[reader] != Mark::none || position_[reader] > last) return;
      marks_[reader] = Mark::behind;
      behind_.push_back(reader);
      open.push_back(reader);
    });
  }
  return !comes_back;
}

// Marks the groups from position `first` on that feed the region.
void RegionOrder::find_before(std::size_t first) {
  std::vector<Group> open = region_;
  while (!open.empty()) {
    const Group group = open.back();
    open.pop_back();
    ++visits_;
    for_each_producer(group, [&](Group producer) {
      if (marks_[producer] != Mark::none || position_[producer] < first) return;
      marks_[producer] = Mark::before;
      before_.push_back(producer);
      open.push_back(producer);
    });
  }
}

// Redistributes the positions of all marked groups: first those that feed the region, then the region, then
// those that depend on it. The region needs only one position; the others remain unused.
void RegionOrder::rearrange() {
  sort_by_position(before_);
  sort_by_position(behind_);
  std::vector<std::size_t> positions;
  for (const auto* groups : {&before_, &region_, &behind_})
    for (const Group group : *groups) positions.push_back(position_[group]);
  std::ranges::sort(positions);
  for (std::size_t i = 0; i < before_.size(); ++i) position_[before_[i]] = positions[i];
  position_[region_.front()] = positions[before_.size()];
  for (std::size_t i = 0; i < behind_.size(); ++i)
    position_[behind_[i]] = positions[before_.size() + region_.size() + i];
  for (std::size_t i = 1; i < region_.size(); ++i) {
    group_of_[region_[i]] = region_.front();
    members_[region_.front()].push_back(region_[i]);
  }
}

void RegionOrder::clear_marks() {
  for (auto* groups : {&region_, &before_, &behind_}) {
    for (const Group group : *groups) marks_[group] = Mark::none;
    groups->clear();
  }
}

void RegionOrder::sort_by_position(std::vector<Group>& groups) const {
  std::ranges::sort(groups, {}, [&](Group group) { return position_[group]; });
}

}  // namespace plexaura
