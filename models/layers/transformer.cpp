#include "models/layers/transformer.h"

#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"
#include "core/ops/binary.h"

namespace plexaura::layers {

namespace {

MultiheadAttention attention_of(std::int64_t width, std::int64_t heads, const TransformerOptions& options) {
  return {width, heads, {.dropout = options.dropout, .bias = options.bias}};
}

LayerNorm norm_of_width(std::int64_t width, const TransformerOptions& options) {
  return LayerNorm(width, {.epsilon = options.epsilon, .bias = options.bias});
}

// Adds part(x) to x. The norm is applied to the input of the part, or to the sum.
template <class Part>
Node add_part(const Node& x, const LayerNorm& norm, bool norm_first, const Dropout& dropout,
              const Part& part) {
  if (norm_first) return x + dropout(part(norm(x)));
  return norm(x + dropout(part(x)));
}

template <class LayerOf>
std::vector<LayerOf> stack_of(std::int64_t layers, std::int64_t width, std::int64_t heads,
                              const TransformerOptions& options) {
  if (layers < 1) throw UserError(fmt::format("a transformer cannot have {} layers; give 1 or more", layers));
  std::vector<LayerOf> stack;
  for (std::int64_t i = 0; i < layers; ++i) stack.emplace_back(width, heads, options);
  return stack;
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t width, std::int64_t heads,
                                                 const TransformerOptions& options)
    : norm_first_(options.norm_first),
      activation_(options.activation),
      dropout_(options.dropout),
      self_attn_(attention_of(width, heads, options)),
      linear1_(width, options.feedforward, {.bias = options.bias}),
      linear2_(options.feedforward, width, {.bias = options.bias}),
      norm1_(norm_of_width(width, options)),
      norm2_(norm_of_width(width, options)) {}

void TransformerEncoderLayer::members(MemberVisitor& visit) {
  visit("self_attn", self_attn_);
  visit("linear1", linear1_);
  visit("linear2", linear2_);
  visit("norm1", norm1_);
  visit("norm2", norm2_);
}

Node TransformerEncoderLayer::operator()(Operand x, const AttentionMasks& masks) const {
  const auto call = enter_unseen(x);
  return with_attention(x.node(), [&](const Node& input) { return self_attn_(input, masks); });
}

Node TransformerEncoderLayer::next(Operand x, const AttentionCache& cache, Operand position) const {
  const auto call = enter_unseen(x);
  return with_attention(x.node(), [&](const Node& input) { return self_attn_.next(input, cache, position); });
}

Node TransformerEncoderLayer::with_attention(const Node& x,
                                             const std::function<Node(const Node&)>& attend) const {
  const Node y = add_part(x, norm1_, norm_first_, dropout_, attend);
  return add_part(y, norm2_, norm_first_, dropout_,
                  [&](const Node& input) { return linear2_(dropout_(activation_(linear1_(input)))); });
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t width, std::int64_t heads,
                                                 const TransformerOptions& options)
    : norm_first_(options.norm_first),
      activation_(options.activation),
      dropout_(options.dropout),
      self_attn_(attention_of(width, heads, options)),
      multihead_attn_(attention_of(width, heads, options)),
      linear1_(width, options.feedforward, {.bias = options.bias}),
      linear2_(options.feedforward, width, {.bias = options.bias}),
      norm1_(norm_of_width(width, options)),
      norm2_(norm_of_width(width, options)),
      norm3_(norm_of_width(width, options)) {}

void TransformerDecoderLayer::members(MemberVisitor& visit) {
  visit("self_attn", self_attn_);
  visit("multihead_attn", multihead_attn_);
  visit("linear1", linear1_);
  visit("linear2", linear2_);
  visit("norm1", norm1_);
  visit("norm2", norm2_);
  visit("norm3", norm3_);
}

Node TransformerDecoderLayer::operator()(Operand target, Operand memory, const DecoderMasks& masks) const {
  const auto call = enter_unseen(target);
  const Node attended = add_part(target.node(), norm1_, norm_first_, dropout_,
                                 [&](const Node& input) { return self_attn_(input, masks.self); });
  const Node informed = add_part(attended, norm2_, norm_first_, dropout_, [&](const Node& input) {
    return multihead_attn_(input, memory, memory, masks.memory);
  });
  return add_part(informed, norm3_, norm_first_, dropout_,
                  [&](const Node& input) { return linear2_(dropout_(activation_(linear1_(input)))); });
}

TransformerEncoder::TransformerEncoder(std::int64_t layers, std::int64_t width, std::int64_t heads,
                                       const TransformerOptions& options, std::optional<LayerNorm> norm)
    : layers_(stack_of<TransformerEncoderLayer>(layers, width, heads, options)), norm_(std::move(norm)) {}

void TransformerEncoder::members(MemberVisitor& visit) {
  visit("layers", layers_);
  visit("norm", norm_);
}

Node TransformerEncoder::operator()(Operand x, const AttentionMasks& masks) const {
  const auto call = enter_unseen(x);
  Node y = x.node();
  for (const TransformerEncoderLayer& layer : layers_) y = layer(y, masks);
  return norm_ ? (*norm_)(y) : y;
}

Node TransformerEncoder::next(Operand x, const std::vector<AttentionCache>& caches, Operand position) const {
  const auto call = enter_unseen(x);
  if (caches.size() != layers_.size())
    throw UserError(fmt::format("an encoder of {} layers is given {} caches; give one for each layer",
                                layers_.size(), caches.size()));
  Node y = x.node();
  for (std::size_t i = 0; i < layers_.size(); ++i) y = layers_[i].next(y, caches[i], position);
  return norm_ ? (*norm_)(y) : y;
}

TransformerDecoder::TransformerDecoder(std::int64_t layers, std::int64_t width, std::int64_t heads,
                                       const TransformerOptions& options, std::optional<LayerNorm> norm)
    : layers_(stack_of<TransformerDecoderLayer>(layers, width, heads, options)), norm_(std::move(norm)) {}

void TransformerDecoder::members(MemberVisitor& visit) {
  visit("layers", layers_);
  visit("norm", norm_);
}

Node TransformerDecoder::operator()(Operand target, Operand memory, const DecoderMasks& masks) const {
  const auto call = enter_unseen(target);
  Node y = target.node();
  for (const TransformerDecoderLayer& layer : layers_) y = layer(y, memory, masks);
  return norm_ ? (*norm_)(y) : y;
}

Transformer::Transformer(std::int64_t width, std::int64_t heads, TransformerDepth depth,
                         const TransformerOptions& options)
    : encoder_(depth.encoder_layers, width, heads, options, norm_of_width(width, options)),
      decoder_(depth.decoder_layers, width, heads, options, norm_of_width(width, options)) {}

void Transformer::members(MemberVisitor& visit) {
  visit("encoder", encoder_);
  visit("decoder", decoder_);
}

Node Transformer::operator()(Operand source, Operand target, const TransformerMasks& masks) const {
  const auto call = enter_unseen(target);
  return decoder_(target, encoder_(source, masks.source), masks.target);
}

}  // namespace plexaura::layers
