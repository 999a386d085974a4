#include "backends/cpu/fast/attention/attention_kinds.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "backends/regions/region_match.h"

namespace plexaura::fast {

namespace {

struct KindWord {
  std::string_view text;
  bool AttentionRegion::*member;
};
constexpr std::array gradient_words{KindWord{" q", &AttentionRegion::query_grad},
                                    KindWord{" k", &AttentionRegion::key_grad},
                                    KindWord{" v", &AttentionRegion::value_grad}};
constexpr std::array<std::string_view, 4> mask_words{"", "+mask", "+added_mask", "+causal"};

std::map<std::string, AttentionRegion> all_regions() {
  std::map<std::string, AttentionRegion> regions;
  for (std::size_t mask = 0; mask < mask_words.size(); ++mask)
    for (const bool drops : {false, true})
      for (unsigned gradients = 0; gradients < 8; ++gradients) {
        const AttentionRegion region{.backward = gradients != 0,
                                     .mask = static_cast<AttentionMaskKind>(mask),
                                     .drops = drops,
                                     .query_grad = (gradients & 1U) != 0,
                                     .key_grad = (gradients & 2U) != 0,
                                     .value_grad = (gradients & 4U) != 0};
        regions.emplace(region.kind(), region);
      }
  return regions;
}

std::int64_t extent_from_end(const Shape& shape, std::int64_t axis) { return shape[shape.rank() - axis]; }

}  // namespace

std::string AttentionRegion::kind() const {
  std::string text = backward ? "attention_grad" : "attention";
  text += mask_words[static_cast<std::size_t>(mask)];
  if (drops) text += "+dropout";
  if (backward) text += " of";
  for (const KindWord& word : gradient_words)
    if (this->*word.member) text += word.text;
  return text;
}

std::optional<AttentionRegion> attention_region(const std::string& kind) {
  static const std::map<std::string, AttentionRegion> regions = all_regions();
  const auto found = regions.find(kind);
  return found == regions.end() ? std::nullopt : std::optional(found->second);
}

AttentionShape attention_shape(const Graph& graph, const Region& region) {
  const Shape& query = graph.type(region.inputs[0]).shape;
  const Shape& value = graph.type(region.inputs[2]).shape;
  const std::int64_t queries = extent_from_end(query, 2), features = extent_from_end(query, 1);
  return {query.elements() / (queries * features), queries, extent_from_end(value, 2), features,
          extent_from_end(value, 1)};
}

std::optional<NodeId> dropout_in(const Graph& graph, const Region& region) {
  const auto found =
      std::ranges::find_if(region.nodes, [&](NodeId node) { return is_op(graph, node, "dropout"); });
  return found == region.nodes.end() ? std::nullopt : std::optional(*found);
}

}  // namespace plexaura::fast
