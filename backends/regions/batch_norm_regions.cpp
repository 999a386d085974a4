#include "backends/regions/batch_norm_regions.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "backends/regions/region_match.h"
#include "backends/regions/relu_mask.h"

namespace plexaura {

namespace {

// The names of ops in the kind of a region, which is the list of its ops. The forward kinds consist of the
// moments (if they are computed from the same input), normalise, an addition and relu. The backward kinds
// consist of relu's mask, the gradient of normalise, an addition, and the gradient of the moments with its
// addition.
constexpr std::string_view moments_first = "moments+";
constexpr std::string_view masked_first = "gt+where+";
constexpr std::string_view total_grad = "normalise_grad+moments_grad+add";
constexpr std::string_view total_grad_and_more = "normalise_grad+add+moments_grad+add";

constexpr std::size_t inputs_without_moments = 3;
constexpr std::size_t inputs_with_moments = 5;

bool remove_first(std::string_view& kind, std::string_view first) {
  if (!kind.starts_with(first)) return false;
  kind.remove_prefix(first.size());
  return true;
}

// True if both gradients belong to the same input, mean and inverse, and no other node reads the gradients of
// mean and inverse.
bool are_partners(const Graph& graph, NodeId normal, NodeId moments, const Uses& uses) {
  const std::vector<Value>& of_normal = graph.record(normal).inputs;
  const std::vector<Value>& of_moments = graph.record(moments).inputs;
  return of_normal[0] == of_moments[0] && of_normal[2] == of_moments[1] && of_normal[3] == of_moments[2] &&
         of_moments[3] == Value{normal, 3} && of_moments[4] == Value{normal, 4} &&
         uses.only_read_by({normal, 3}, moments) && uses.only_read_by({normal, 4}, moments);
}

// Returns the region that begins at `normal`, or at its moments if these are computed from the same input.
Region from_normalise(const Graph& graph, NodeId normal, std::vector<NodeId> behind, std::string_view rest,
                      std::optional<Value> addend) {
  Region region{"normalise" + std::string(rest), {normal}, graph.record(normal).inputs, {}};
  const Value mean = region.inputs[3];
  region.outputs.push_back({behind.empty() ? normal : behind.back(), 0});
  if (is_op(graph, mean.node, "moments") && mean.output == 0 && region.inputs[4] == Value{mean.node, 2} &&
      graph.record(mean.node).inputs[0] == region.inputs[0]) {
    region.kind = std::string(moments_first) + region.kind;
    region.nodes.insert(region.nodes.begin(), mean.node);
    region.inputs.resize(inputs_without_moments);
    for (std::uint32_t i = 0; i < 3; ++i) region.outputs.push_back({mean.node, i});
  }
  region.nodes.insert(region.nodes.end(), behind.begin(), behind.end());
  if (addend) region.inputs.push_back(*addend);
  return region;
}

std::vector<Region> match_normalise(const Graph& graph, NodeId normal) {
  Region region = from_normalise(graph, normal, {}, "", {});
  if (region.nodes.size() == 1) return {};
  return {std::move(region)};
}

std::vector<Region> match_relu(const Graph& graph, NodeId relu, const Uses& uses) {
  const Value before = graph.record(relu).inputs[0];
  if (!uses.only_read_by(before, relu)) return {};
  if (is_op(graph, before.node, "normalise"))
    return {from_normalise(graph, before.node, {relu}, "+relu", {})};
  if (!is_op(graph, before.node, "add")) return {};
  const std::vector<Value>& operands = graph.record(before.node).inputs;
  std::vector<Region> regions;
  for (std::size_t side = 0; side < 2; ++side) {
    const Value normal = operands[side];
    const Value addend = operands[1 - side];
    if (!is_op(graph, normal.node, "normalise") || addend.node == normal.node ||
        !uses.only_read_by(normal, before.node))
      continue;
    if (graph.type(addend) != graph.type(normal)) continue;
    regions.push_back(from_normalise(graph, normal.node, {before.node, relu}, "+add+relu", addend));
  }
  return regions;
}

// The sum of both gradients of an input, which ends at an addition.
struct TotalGrad {
  NodeId normal;
  NodeId moments;
  std::optional<NodeId> addition;  // an earlier addition, which adds `addend`
  std::optional<Value> addend;
};

std::optional<TotalGrad> find_total(const Graph& graph, NodeId last, const Uses& uses) {
  const std::vector<Value>& operands = graph.record(last).inputs;
  const Value moments = operands[1];
  if (!is_op(graph, moments.node, "moments_grad") || !uses.only_read_by(moments, last)) return std::nullopt;
  if (!uses.only_read_by(operands[0], last)) return std::nullopt;
  const auto is_partner = [&](Value value, NodeId reader) {
    return is_op(graph, value.node, "normalise_grad") && value.output == 0 &&
           uses.only_read_by(value, reader) && are_partners(graph, value.node, moments.node, uses);
  };
  const NodeId before = operands[0].node;
  if (is_partner(operands[0], last)) return TotalGrad{before, moments.node, {}, {}};
  if (!is_op(graph, before, "add")) return std::nullopt;
  const std::vector<Value>& added = graph.record(before).inputs;
  if (!is_partner(added[1], before) || graph.type(added[0]) != graph.type(added[1])) return std::nullopt;
  return TotalGrad{added[1].node, moments.node, before, added[0]};
}

// Returns the regions of a gradient that end at `last`: one that includes the mask of the relu, if there is one,
// and one without the mask. If another node, such as a skip path, reads the masked gradient, the first region has
// it as an output too.
std::vector<Region> match_grad(const Graph& graph, NodeId last, const Uses& uses) {
  const auto total = find_total(graph, last, uses);
  if (!total) return {};
  Region plain{std::string(total->addend ? total_grad_and_more : total_grad),
               {total->normal},
               graph.record(total->normal).inputs,
               {{last, 0}, {total->normal, 1}, {total->normal, 2}}};
  if (total->addition) plain.nodes.push_back(*total->addition);
  plain.nodes.insert(plain.nodes.end(), {total->moments, last});
  Region masked = plain;
  if (total->addend) plain.inputs.push_back(*total->addend);
  const Value grad = plain.inputs[BatchNormRegion::grad_input];
  const auto mask = find_relu_mask(graph, grad, uses);
  if (!mask || total->addend == grad) return {std::move(plain)};
  masked.kind = std::string(masked_first) + masked.kind;
  masked.nodes.insert(masked.nodes.begin(), {mask->compare, mask->where});
  masked.inputs[BatchNormRegion::grad_input] = mask->grad;
  masked.inputs.push_back(mask->y);
  if (total->addend) masked.inputs.push_back(*total->addend);
  masked.inputs.insert(masked.inputs.end(), mask->zeros.begin(), mask->zeros.end());
  if (!uses.only_read_by(grad, total->normal)) masked.outputs.push_back(grad);
  return {std::move(masked), std::move(plain)};
}

}  // namespace

std::size_t BatchNormRegion::addend_input() const {
  if (forward()) return moments ? inputs_without_moments : inputs_with_moments;
  return result_input() + (masks ? 1 : 0);
}

std::size_t BatchNormRegion::inputs_read() const { return addend_input() + (adds ? 1 : 0); }

std::size_t BatchNormRegion::output_in_place(const Region& region) const {
  return region.kind != "normalise_grad" && region.outputs.size() > masked_output ? masked_output : 0;
}

std::optional<BatchNormRegion> batch_norm_region(const std::string& kind) {
  std::string_view rest = kind;
  BatchNormRegion region;
  region.masks = remove_first(rest, masked_first);
  if (rest == total_grad || rest == total_grad_and_more) {
    region.direction = BatchNormRegion::Direction::backward;
    region.adds = rest == total_grad_and_more;
    return region;
  }
  region.moments = remove_first(rest, moments_first);
  if (region.masks || !remove_first(rest, "normalise")) return std::nullopt;
  region.adds = remove_first(rest, "+add");
  region.relu = remove_first(rest, "+relu");
  const bool is_known = rest.empty() && (region.relu || (region.moments && !region.adds));
  return is_known ? std::optional(region) : std::nullopt;
}

std::vector<Region> match_batch_norm(const Graph& graph, NodeId last, const Uses& uses) {
  if (is_op(graph, last, "relu")) return match_relu(graph, last, uses);
  if (is_op(graph, last, "normalise")) return match_normalise(graph, last);
  if (is_op(graph, last, "add")) return match_grad(graph, last, uses);
  return {};
}

bool belongs_to_batch_norm(const Graph& graph, NodeId node, const Uses& uses) {
  for (const Value input : graph.record(node).inputs)
    if (is_op(graph, input.node, "normalise") || is_op(graph, input.node, "normalise_grad") ||
        is_op(graph, input.node, "moments_grad"))
      return true;
  const auto is_masked_grad = [&](NodeId reader) { return is_op(graph, reader, "normalise_grad"); };
  const auto leads_there = [&](NodeId reader) {
    return is_masked_grad(reader) || (is_op(graph, reader, "where") && is_op(graph, node, "gt") &&
                                      std::ranges::any_of(uses.readers({reader, 0}), is_masked_grad));
  };
  return std::ranges::any_of(uses.readers({node, 0}), leads_there);
}

}  // namespace plexaura
