#include "backends/cuda/regions/fused_batch_norm.h"

#include <algorithm>
#include <string_view>

#include "backends/regions/region_match.h"

namespace plexaura::cuda {

namespace {

constexpr std::string_view sum_first = "add+";
constexpr std::string_view normalised_first = "normalise+";
constexpr std::string_view mask_behind = "gt+";

bool remove_first(std::string_view& kind, std::string_view first, std::string_view behind = "") {
  if (!kind.starts_with(first) || !kind.substr(first.size()).starts_with(behind)) return false;
  kind.remove_prefix(first.size());
  return true;
}

// If `result` is relu(normalise(...)) with the x, scale, mean and inverse of the region, returns the shift of
// that normalise(), and nothing otherwise.
std::optional<Value> shift_of(const Graph& graph, const Region& region, Value result) {
  if (!is_op(graph, result.node, "relu")) return std::nullopt;
  const Value clipped = graph.record(result.node).inputs[0];
  if (!is_op(graph, clipped.node, "normalise")) return std::nullopt;
  const std::vector<Value>& inputs = graph.record(clipped.node).inputs;
  const std::vector<Value> same{inputs[0], inputs[1], inputs[3], inputs[4]};
  if (!std::equal(same.begin(), same.end(), region.inputs.begin())) return std::nullopt;
  return inputs[2];
}

Region with_mask_again(const Graph& graph, Region region) {
  const auto of = batch_norm_region(region.kind);
  if (of->forward() || !of->masks) return region;
  Value& result = region.inputs[of->result_input()];
  if (const auto shift = shift_of(graph, region, result)) {
    region.kind = std::string(normalised_first) + region.kind;
    result = *shift;
  }
  return region;
}

// Returns the region together with the addition that computes the gradient, if the region is the only reader
// of that sum.
std::optional<Region> with_sum(const Graph& graph, Region region, const Uses& uses) {
  const BatchNormRegion of = fused_batch_norm(region.kind)->of;
  if (of.forward()) return std::nullopt;
  Value& grad = region.inputs[BatchNormRegion::grad_input];
  const NodeId reader = region.nodes[of.masks ? 1 : 0];
  if (!is_op(graph, grad.node, "add") || !uses.only_read_by(grad, reader)) return std::nullopt;
  const std::vector<Value>& added = graph.record(grad.node).inputs;
  if (graph.type(added[0]) != graph.type(grad) || graph.type(added[1]) != graph.type(grad))
    return std::nullopt;
  region.kind = std::string(sum_first) + region.kind;
  region.nodes.insert(region.nodes.begin(), grad.node);
  grad = added[0];
  region.inputs.insert(region.inputs.begin() + static_cast<std::ptrdiff_t>(of.inputs_read()), added[1]);
  return region;
}

}  // namespace

std::optional<FusedBatchNorm> fused_batch_norm(const std::string& kind) {
  FusedBatchNorm fused;
  std::string_view rest = kind;
  fused.sums = remove_first(rest, sum_first);
  fused.remasks = remove_first(rest, normalised_first, mask_behind);
  const auto of = batch_norm_region(std::string(rest));
  if (!of) return std::nullopt;
  fused.of = *of;
  return fused;
}

std::vector<Region> match_fused_batch_norm(const Graph& graph, NodeId last, const Uses& uses) {
  std::vector<Region> fused;
  for (Region& plain : match_batch_norm(graph, last, uses)) {
    Region region = with_mask_again(graph, std::move(plain));
    if (auto summed = with_sum(graph, region, uses)) fused.push_back(std::move(*summed));
    fused.push_back(std::move(region));
  }
  return fused;
}

}  // namespace plexaura::cuda
