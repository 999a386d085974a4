#pragma once

#include <cstdint>
#include <optional>

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

struct AttentionOptions {
  bool is_causal = false;            // query i attends to keys 0 to i only; not together with a mask
  double dropout = 0;                // the probability that an attention weight becomes 0, as in dropout()
  std::optional<double> scale = {};  // factor of the products query key^T; by default 1 / sqrt(E)
};

// Attention (Vaswani et al., arXiv:1706.03762): softmax(scale query key^T) value, where the softmax is over the keys.
// query [..., L, E], key [..., S, E], value [..., S, V] -> [..., L, V]. All axes before the last two broadcast.
// Floating, one dtype; the softmax of 16-bit floats is computed in float32.
//   mask: broadcasts to [..., L, S]; bool, true where a query may attend to a key, or of the query's dtype, added to
//   the scaled products. A query that may attend to no key gets NaN.
PLEXAURA_API Node scaled_dot_product_attention(Operand query, Operand key, Operand value,
                                               AttentionOptions options = {});
PLEXAURA_API Node scaled_dot_product_attention(Operand query, Operand key, Operand value, Operand mask,
                                               AttentionOptions options = {});

struct RotaryOptions {
  double base = 10000;      // above 0
  std::int64_t offset = 0;  // position of the first element of the sequence
  // True: the pairs are neighbouring elements. False: element i and element i + D / 2.
  bool interleaved = false;
};

// Rotary position embedding (Su et al., arXiv:2104.09864): rotates pair i of the last axis of x [..., T, D], with D
// even, by the angle (t + offset) base^(-2 i / D) at position t. 16-bit floats are computed in float32. Floating.
PLEXAURA_API Node rotary(Operand x, RotaryOptions options = {});

}  // namespace plexaura
