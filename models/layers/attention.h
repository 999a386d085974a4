#pragma once

#include "models/layers/linear.h"

namespace plexaura::layers {

// The masks of an attention, which define which query may attend to which key. Here `true` permits, as in the
// op scaled_dot_product_attention. The masks of PyTorch's MultiheadAttention, where `true` forbids, must be
// inverted. A query that may attend to no key gets NaN.
struct AttentionMasks {
  // A mask that broadcasts to [N, heads, L, S], such as [L, S]. It is bool, or has x's dtype and is added to
  // the products before the softmax.
  Node mask = {};
  Node keys = {};          // bool [N, S]: false for the padding at the end of a short sequence
  bool is_causal = false;  // true: query i attends to keys 0 to i only
};

struct MultiheadAttentionOptions {
  double dropout = 0;  // the probability that an attention weight becomes 0 in training
  bool bias = true;
};

// The keys and values of sequences whose positions are computed one by one by MultiheadAttention::next().
// They are the buffers "keys" and "values", [samples, heads, positions, width / heads], which start as zeros.
// These buffers must be in the store of the model.
class AttentionCache final : public Module {
 public:
  // Throws UserError if `heads` does not divide `width`.
  AttentionCache(std::int64_t samples, std::int64_t positions, std::int64_t width, std::int64_t heads);

  void members(MemberVisitor& visit) override;
  const Parameter& keys() const { return keys_; }
  const Parameter& values() const { return values_; }

 private:
  Parameter keys_;
  Parameter values_;
};

// Attention (Vaswani et al., arXiv:1706.03762) of `heads` heads, each of width / heads features: queries [N, L, width],
// keys and values [N, S, width] -> [N, L, width].
// Parameters, as in PyTorch: in_proj_weight [3 width, width], for queries, keys and values, and in_proj_bias [3 width];
// out_proj.weight [width, width], out_proj.bias [width]. in_proj_weight starts Glorot-uniform, out_proj.weight
// within 1 / sqrt(width), and biases as zeros.
class MultiheadAttention final : public Layer {
 public:
  // Throws UserError if `heads` does not divide `width`.
  MultiheadAttention(std::int64_t width, std::int64_t heads, MultiheadAttentionOptions options = {});

  void members(MemberVisitor& visit) override;
  // Self-attention: each position of x [N, L, width] attends to all positions of x.
  Node operator()(Operand x) const override { return (*this)(x, AttentionMasks{}); }
  Node operator()(Operand x, const AttentionMasks& masks) const { return (*this)(x, x, x, masks); }
  // Throws UserError unless the inputs have the shapes of queries, keys and values that the comment of this class names.
  Node operator()(Operand query, Operand key, Operand value, const AttentionMasks& masks = {}) const;
  // Computes the next position of sequences: x [N, 1, width] attends to itself and to the positions before
  // it, whose keys and values are in the cache. The graph updates the cache. Returns [N, 1, width], the same
  // as position number `position`, int64 [], of a call with is_causal for the whole sequences. A new sequence
  // starts at position 0, and positions must not be left out. A position that the cache does not have gets
  // NaN. Throws UserError for inputs or a cache of other shapes.
  Node next(Operand x, const AttentionCache& cache, Operand position) const;

 private:
  void check(const Operand& x, const char* name) const;
  Node projected(const Operand& x, std::int64_t first, std::int64_t count) const;
  Node in_heads(const Node& x, std::int64_t part) const;
  Node attended(const Node& query, const Node& key, const Node& value, const AttentionMasks& masks) const;

  std::int64_t width_;
  std::int64_t heads_;
  double dropout_;
  Parameter in_proj_weight_;
  std::unique_ptr<Parameter> in_proj_bias_;
  Linear out_proj_;
};

}  // namespace plexaura::layers
