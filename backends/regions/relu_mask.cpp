#include "backends/regions/relu_mask.h"

#include "backends/regions/region_match.h"

namespace plexaura {

namespace {

bool is_zero(const Graph& graph, Value value) {
  const Leaf* leaf = as_leaf(*graph.record(value.node).op);
  return leaf != nullptr && leaf->kind() == LeafKind::constant && leaf->value()->elements() == 1 &&
         leaf->value()->to_doubles()[0] == 0;
}

}  // namespace

std::optional<ReluMask> find_relu_mask(const Graph& graph, Value value, const Uses& uses) {
  if (!is_op(graph, value.node, "where")) return std::nullopt;
  const std::vector<Value>& choice = graph.record(value.node).inputs;
  if (!is_op(graph, choice[0].node, "gt") || !uses.only_read_by(choice[0], value.node)) return std::nullopt;
  const std::vector<Value>& compared = graph.record(choice[0].node).inputs;
  if (graph.type(compared[0]) != graph.type(choice[1]) || graph.type(value) != graph.type(choice[1]) ||
      !is_zero(graph, compared[1]) || !is_zero(graph, choice[2]))
    return std::nullopt;
  ReluMask mask{choice[0].node, value.node, compared[0], choice[1], {compared[1]}};
  if (choice[2] != compared[1]) mask.zeros.push_back(choice[2]);
  return mask;
}

}  // namespace plexaura
