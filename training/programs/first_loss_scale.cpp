#include "training/programs/first_loss_scale.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace plexaura {

namespace {

// Returns the number of elements of the largest value from which ops make this scalar; 1 if there is none.
std::int64_t elements_reduced_to(const Node& scalar) {
  const Graph& graph = scalar.graph();
  std::int64_t most = 1;
  std::set<NodeId> seen;
  std::vector<NodeId> open{scalar.id()};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    for (const Value& input : graph.record(id).inputs) {
      const std::int64_t elements = graph.type(input).shape.elements();
      most = std::max(most, elements);
      if (elements == 1) open.push_back(input.node);
    }
  }
  return most;
}

}  // namespace

LossScale first_loss_scale(const LossOutputs& model, std::int64_t samples) {
  LossScale scale;
  if (model.weight.is_empty()) return scale;
  const std::int64_t labels = elements_reduced_to(model.weight) / std::max<std::int64_t>(samples, 1);
  constexpr int room = 3;  // the scale is smaller by this power of 2
  if (labels > 1)
    scale.scale = std::max(std::ldexp(scale.scale, -std::ilogb(labels) - room), LossScale::least);
  return scale;
}

}  // namespace plexaura
