#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// A graph that an op holds: the computation of the op's outputs from its operands. Its leaves are operands
// and constants; node i is operand i for each i below operands(). A value: it never changes, and several
// threads may read it.
class PLEXAURA_API Subgraph {
 public:
  // Throws InternalError if the graph has other leaves or updates, or if its operands are not its first nodes.
  Subgraph(std::shared_ptr<const Graph> graph, std::vector<Value> outputs);

  // Returns the same graph with other outputs.
  std::shared_ptr<const Subgraph> with_outputs(std::vector<Value> outputs) const;

  const Graph& graph() const { return *graph_; }
  const std::vector<Value>& outputs() const { return outputs_; }
  std::size_t operands() const { return operands_; }
  const TensorType& operand_type(std::size_t operand) const {
    return graph_->record(static_cast<NodeId>(operand)).types[0];
  }
  const TensorType& output_type(std::size_t output) const { return graph_->type(outputs_[output]); }
  // Returns true for an operand that a node or an output reads.
  bool reads(std::size_t operand) const { return reads_[operand]; }

  // True if both graphs have the same structure. The places where nodes were written do not count.
  bool operator==(const Subgraph& other) const;
  std::uint64_t hash() const { return hash_; }  // hash of the structure; the same on every machine

 private:
  std::shared_ptr<const Graph> graph_;
  std::vector<Value> outputs_;
  std::size_t operands_ = 0;
  std::vector<bool> reads_;
  std::uint64_t hash_;
};

// Returns the size and the hash: "12 nodes 1f2e3d4c5b6a7988".
PLEXAURA_API std::string to_string(const Subgraph& graph);

// Returns the part of a graph that computes `outputs` from `operands`, which may be any values. It includes
// the constants that it needs.
PLEXAURA_API std::shared_ptr<const Subgraph> extract(const Graph& source, std::span<const Value> outputs,
                                                     std::span<const Value> operands);

// Appends the nodes of a subgraph to `target`, with `operands` in place of its operands. Returns the values
// of `target` that stand for the outputs of each node of the subgraph.
PLEXAURA_API std::vector<std::vector<Value>> append_subgraph(Graph& target, const Subgraph& subgraph,
                                                             std::span<const Value> operands);

// Appends an op with an origin of its own; returns all its outputs.
PLEXAURA_API std::vector<Value> append_with_origin(Graph& target, std::shared_ptr<const Op> op,
                                                   const std::vector<Value>& inputs, const Origin& origin);

}  // namespace plexaura
