#include "backends/cuda/offers/cast_behind.h"

#include <algorithm>

#include "backends/regions/region_match.h"

namespace plexaura::cuda {

namespace {

constexpr std::string_view behind = "+cast";
constexpr std::string_view steps[] = {"sgd_step", "adam_step", "rms_step"};
constexpr std::string_view images = "normalise_image";

}  // namespace

std::vector<Region> match_cast_behind(const Graph& graph, NodeId last, const Uses& uses) {
  if (!is_op(graph, last, "cast") || size_of(graph.type({last, 0}).dtype) != 2) return {};
  const Value wide = graph.record(last).inputs[0];
  if (wide.output != 0 || graph.type(wide).dtype != DType::float32) return {};
  const std::string_view op = graph.record(wide.node).op->name();
  const bool is_step = std::ranges::find(steps, op) != std::end(steps);
  if (!is_step && (op != images || !uses.only_read_by(wide, last))) return {};
  Region region = single(graph, wide.node);
  region.kind += behind;
  region.nodes.push_back(last);
  if (!is_step) region.outputs.clear();
  region.outputs.push_back({last, 0});
  return {std::move(region)};
}

bool is_cast_behind(const Region& region) {
  const std::string_view kind = region.kind;
  if (!kind.ends_with(behind)) return false;
  const std::string_view op = kind.substr(0, kind.size() - behind.size());
  return op == images || std::ranges::find(steps, op) != std::end(steps);
}

}  // namespace plexaura::cuda
