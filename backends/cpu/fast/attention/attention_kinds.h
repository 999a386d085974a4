#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device/backend.h"

// Regions of scaled_dot_product_attention and of its gradient.

namespace plexaura::fast {

enum class AttentionMaskKind : std::uint8_t {
  none,
  bools,   // the scores are where(mask, scores, -infinity)
  added,   // the mask is added to the scores
  causal,  // query i attends to the keys 0 to i; no mask is read
};

// Describes a region.
//   inputs: query, times the scale; key; value; backward: the gradient of the result; the mask, if one is read; the step
//     scalar `random`, if weights are dropped; values that kernels need not read
//   outputs: forward the result, backward the wanted gradients of query, key and value
struct AttentionRegion {
  bool backward = false;
  AttentionMaskKind mask = AttentionMaskKind::none;
  bool drops = false;  // true if dropout is applied to the weights
  bool query_grad = false;
  bool key_grad = false;
  bool value_grad = false;

  bool reads_mask() const { return mask == AttentionMaskKind::bools || mask == AttentionMaskKind::added; }
  std::size_t mask_input() const { return backward ? 4 : 3; }
  std::size_t random_input() const { return mask_input() + (reads_mask() ? 1 : 0); }
  std::size_t inputs_read() const { return random_input() + (drops ? 1 : 0); }

  // Returns the name of the kind, such as "attention+causal" or "attention_grad+mask of q k v".
  std::string kind() const;
};

// Returns the region of this kind. Returns nothing for the kinds of other regions.
std::optional<AttentionRegion> attention_region(const std::string& kind);

// The sizes of an attention.
struct AttentionShape {
  std::int64_t pairs;     // number of pairs of query and key matrices
  std::int64_t queries;   // rows of each query matrix
  std::int64_t keys;      // rows of each key and value matrix
  std::int64_t features;  // columns of query and key
  std::int64_t values;    // columns of value and result
};

AttentionShape attention_shape(const Graph& graph, const Region& region);

// Returns the node of the region's dropout; nothing if it drops no weights.
std::optional<NodeId> dropout_in(const Graph& graph, const Region& region);

}  // namespace plexaura::fast
