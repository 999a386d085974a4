#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/vm/feed.h"

namespace plexaura::testing {

// The part of a graph that computes a loss, as a function of its inputs, parameters and buffers.
class CopiedLoss {
 public:
  // Throws UserError, with the name of the leaf, if a value is missing, is not needed, or has another type than
  // its leaf. `values` must outlive this object. `caller` names the function in errors.
  CopiedLoss(const Node& loss, const std::vector<Feed>& values, std::string caller);

  // Appends the nodes to `target`, with `inputs` in place of the leaves, in the order of the values. Each node
  // keeps its source line. Returns one node, the loss.
  std::vector<Node> operator()(Graph& target, std::span<const Node> inputs) const;

 private:
  [[noreturn]] void fail(const std::string& rule) const;
  void check_value(const Feed& value) const;

  Node loss_;
  const std::vector<Feed>& values_;
  std::string caller_;
  std::vector<bool> needed_;
  std::map<std::string, NodeId> leaves_;
};

// Returns the values that a loss needs, of those that are given. Use it before CopiedLoss if a model has fields
// or parameters on which its loss does not depend.
std::vector<Feed> values_needed(const Node& loss, const std::vector<Feed>& values);

}  // namespace plexaura::testing
