#include "backends/cpu/fast/row_chains/row_chain_regions.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string_view>

#include "backends/cpu/fast/elementwise/elementwise_ops.h"
#include "backends/regions/chain_growth.h"
#include "backends/regions/region_match.h"
#include "core/ops/slice.h"

namespace plexaura::fast {

namespace {

constexpr std::string_view kind = "row chain of ";
constexpr std::size_t fewest_ops = 3;
// All ops of a chain lie within this number of nodes of the graph. A later reader of the last op does not count either.
// This bounds the search.
constexpr NodeId longest_span = 256;

const Shape& shape_of(const Graph& graph, Value value) { return graph.type(value).shape; }

const SliceOptions* slice_options(const Op& op) {
  if (op.name() == "slice") return &op_cast<SliceOp>(op).options();
  if (op.name() == "slice_grad") return &op_cast<SliceGrad>(op).options();
  return nullptr;
}

// True if the value has the rows of `shape`, or one row for all of them.
bool has_rows(const Shape& value, const Shape& shape) {
  if (rows_of(value) == 1) return true;
  if (value.rank() != shape.rank()) return false;
  for (std::int64_t axis = 0; axis + 1 < shape.rank(); ++axis)
    if (value[axis] != shape[axis]) return false;
  return true;
}

// A region that grows backwards from its last node.
class GrowingRowChain {
 public:
  GrowingRowChain(const Graph& graph, const Uses& uses, NodeId last)
      : graph_(graph), uses_(uses), last_(last), rows_(shape_of(graph, {last, 0})) {}

  // Begins the chain with its last op. Returns false if this op cannot be in a chain, or if the next reader of its result
  // can, so that a longer chain ends there.
  bool begin() {
    const std::vector<NodeId>& readers = uses_.readers({last_, 0});
    const auto next = std::ranges::min_element(readers);
    if (!is_step(last_) || (next != readers.end() && *next - last_ < longest_span && is_step(*next)))
      return false;
    nodes_.insert(last_);
    return true;
  }

  void grow() {
    while (add_one()) {
    }
  }

  bool is_worthwhile() const {
    return nodes_.size() >= fewest_ops &&
           std::ranges::any_of(nodes_, [&](NodeId node) { return takes_columns(graph_, node); });
  }

  Region region() const {
    Region region{fmt::format("{}{} ops", kind, nodes_.size()),
                  {nodes_.begin(), nodes_.end()},
                  inputs_of(graph_, nodes_),
                  {}};
    for (const NodeId node : nodes_)
      if (is_read_outside({node, 0})) region.outputs.push_back({node, 0});
    return region;
  }

 private:
  // Adds the last one of neighbours() that fits. Returns false if there is none.
  bool add_one() {
    const std::set<NodeId> near = neighbours();
    for (auto node = near.rbegin(); node != near.rend(); ++node) {
      if (refused_.contains(*node)) continue;
      nodes_.insert(*node);
      if (is_step(*node) && has_room() && is_convex()) return true;
      nodes_.erase(*node);
      refused_.insert(*node);
    }
    return false;
  }

  // Returns the nodes before the last one that the chain reads, or that read a result of the chain.
  std::set<NodeId> neighbours() const {
    std::set<NodeId> near;
    const auto note = [&](NodeId node) {
      if (node < last_ && last_ - node < longest_span && !nodes_.contains(node)) near.insert(node);
    };
    for (const NodeId node : nodes_) {
      for (const Value input : graph_.record(node).inputs) note(input.node);
      for (const NodeId reader : uses_.readers({node, 0})) note(reader);
    }
    return near;
  }

  bool is_step(NodeId node) const {
    const NodeRecord& record = graph_.record(node);
    const Shape& shape = shape_of(graph_, {node, 0});
    if (record.inputs.empty() || record.types.size() != 1 || shape.rank() < 2 || shape.elements() == 0)
      return false;
    if (shape.rank() != rows_.rank() || rows_of(shape) != rows_of(rows_) || !has_rows(shape, rows_))
      return false;
    if (takes_columns(graph_, node)) return has_rows(shape_of(graph_, record.inputs[0]), rows_);
    const auto fits = [&](Value input) {
      const std::int64_t columns = columns_of(shape_of(graph_, input));
      return has_rows(shape_of(graph_, input), rows_) && (columns == columns_of(shape) || columns == 1);
    };
    return std::ranges::all_of(record.inputs, fits) && elementwise_of(graph_, node).has_value();
  }

  bool has_room() const {
    std::int64_t bytes = 0;
    for (const NodeId node : nodes_) bytes += graph_.type({node, 0}).bytes() / rows_of(rows_) + 64;
    return bytes <= most_bytes_of_row &&
           nodes_.size() + inputs_of(graph_, nodes_).size() < most_values_of_chain;
  }

  // True if no path between two ops of the chain leaves it.
  bool is_convex() const {
    std::set<NodeId> after;  // nodes outside that depend on the chain
    for (NodeId node = *nodes_.begin() + 1; node <= last_; ++node) {
      const auto& inputs = graph_.record(node).inputs;
      const auto comes_after = [&](Value input) { return after.contains(input.node); };
      if (nodes_.contains(node)) {
        if (std::ranges::any_of(inputs, comes_after)) return false;
      } else if (std::ranges::any_of(inputs, [&](Value input) {
                   return nodes_.contains(input.node) || comes_after(input);
                 })) {
        after.insert(node);
      }
    }
    return true;
  }

  bool is_read_outside(Value value) const {
    return uses_.kept(value) ||
           std::ranges::any_of(uses_.readers(value), [&](NodeId reader) { return !nodes_.contains(reader); });
  }

  const Graph& graph_;
  const Uses& uses_;
  NodeId last_;
  const Shape& rows_;  // the shape of the last result; all results have its rows
  std::set<NodeId> nodes_;
  std::set<NodeId> refused_;
};

}  // namespace

std::int64_t columns_of(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[shape.rank() - 1]; }
std::int64_t rows_of(const Shape& shape) {
  return shape.elements() / std::max<std::int64_t>(columns_of(shape), 1);
}

bool takes_columns(const Graph& graph, NodeId node) {
  const NodeRecord& record = graph.record(node);
  const SliceOptions* options = slice_options(*record.op);
  const std::int64_t rank = record.types[0].shape.rank();
  return options != nullptr && options->step == 1 && normalise_axis(options->axis, rank) == rank - 1;
}

std::vector<Region> match_row_chain(const Graph& graph, NodeId last, const Uses& uses) {
  GrowingRowChain chain(graph, uses, last);
  if (!chain.begin()) return {};
  chain.grow();
  if (!chain.is_worthwhile()) return {};
  return {chain.region()};
}

bool is_row_chain(const Region& region) { return region.kind.starts_with(kind); }

}  // namespace plexaura::fast
