#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/layers/attention.h"
#include "models/layers/functional.h"
#include "models/layers/normalisation.h"

namespace plexaura::layers {

// The layers of Vaswani et al., arXiv:1706.03762, with PyTorch's names of parameters and defaults. The batch is always
// the first axis.
struct TransformerOptions {
  std::int64_t feedforward = 2048;  // width of the hidden layer between linear1 and linear2
  // Probability of dropout of attention weights, of the hidden layer, and of the outputs that are added to x.
  double dropout = 0.1;
  std::string activation = "relu";  // name of the activation: see Activation
  double epsilon = 1e-5;            // epsilon of the layer norms
  // True: each part normalises its input, x + part(norm(x)). False: norm(x + part(x)).
  bool norm_first = false;
  bool bias = true;  // true: all linear layers and norms have biases
};

// Self-attention, then two linear layers: x [N, L, width] -> [N, L, width]. With AttentionMasks::is_causal it
// is the block of a GPT. The names of parameters begin with self_attn, linear1, linear2, norm1 and norm2.
class TransformerEncoderLayer final : public Layer {
 public:
  TransformerEncoderLayer(std::int64_t width, std::int64_t heads, const TransformerOptions& options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override { return (*this)(x, AttentionMasks{}); }
  Node operator()(Operand x, const AttentionMasks& masks) const;
  // Computes the next position of sequences: see MultiheadAttention::next().
  Node next(Operand x, const AttentionCache& cache, Operand position) const;

 private:
  Node with_attention(const Node& x, const std::function<Node(const Node&)>& attend) const;

  bool norm_first_;
  Activation activation_;
  Dropout dropout_;
  MultiheadAttention self_attn_;
  Linear linear1_;
  Linear linear2_;
  LayerNorm norm1_;
  LayerNorm norm2_;
};

struct DecoderMasks {
  AttentionMasks self =
      {};  // masks of the target's attention to itself; set is_causal if the target is predicted step by step
  AttentionMasks memory = {};  // masks of the target's attention to the memory
};

// Self-attention, attention to a memory, such as the encoder's output, then two linear layers: target [N, L,
// width], memory [N, S, width] -> [N, L, width]. The names of parameters begin with self_attn,
// multihead_attn, linear1, linear2, norm1, norm2 and norm3.
class TransformerDecoderLayer final : public Module {
 public:
  TransformerDecoderLayer(std::int64_t width, std::int64_t heads, const TransformerOptions& options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand target, Operand memory, const DecoderMasks& masks = {}) const;

 private:
  bool norm_first_;
  Activation activation_;
  Dropout dropout_;
  MultiheadAttention self_attn_;
  MultiheadAttention multihead_attn_;
  Linear linear1_;
  Linear linear2_;
  LayerNorm norm1_;
  LayerNorm norm2_;
  LayerNorm norm3_;
};

// Encoder layers in sequence, with the names "layers.0", "layers.1", ..., and a layer norm "norm" at the end
// if it is given. norm_first needs the layer norm: TransformerEncoder(6, 512, 8, {.norm_first = true},
// LayerNorm(512)). Each layer has its own initial values.
class TransformerEncoder final : public Layer {
 public:
  TransformerEncoder(std::int64_t layers, std::int64_t width, std::int64_t heads,
                     const TransformerOptions& options = {}, std::optional<LayerNorm> norm = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override { return (*this)(x, AttentionMasks{}); }
  Node operator()(Operand x, const AttentionMasks& masks) const;  // passes the same masks to each layer
  // Computes the next position of sequences, with a cache for each layer: see MultiheadAttention::next().
  // Throws UserError for another number of caches.
  Node next(Operand x, const std::vector<AttentionCache>& caches, Operand position) const;

 private:
  std::vector<TransformerEncoderLayer> layers_;
  std::optional<LayerNorm> norm_;
};

// Decoder layers in sequence, with the same names as in TransformerEncoder. All of them attend to one memory.
class TransformerDecoder final : public Module {
 public:
  TransformerDecoder(std::int64_t layers, std::int64_t width, std::int64_t heads,
                     const TransformerOptions& options = {}, std::optional<LayerNorm> norm = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand target, Operand memory, const DecoderMasks& masks = {}) const;

 private:
  std::vector<TransformerDecoderLayer> layers_;
  std::optional<LayerNorm> norm_;
};

struct TransformerDepth {
  std::int64_t encoder_layers = 6;
  std::int64_t decoder_layers = 6;
};

struct TransformerMasks {
  AttentionMasks source = {};  // masks of the source's attention to itself
  DecoderMasks target = {};
};

// An encoder of a source and a decoder of a target, each with a layer norm at the end, as
// torch.nn.Transformer: source [N, S, width], target [N, L, width] -> [N, L, width]. The names of parameters
// begin with encoder.layers.0, ..., encoder.norm, decoder.layers.0, ..., decoder.norm. Their initial values
// are those of the layers, while torch.nn.Transformer initialises all matrices Glorot-uniformly.
class Transformer final : public Module {
 public:
  Transformer(std::int64_t width, std::int64_t heads, TransformerDepth depth = {},
              const TransformerOptions& options = {});

  void members(MemberVisitor& visit) override;
  // Returns decode(target, encode(source)).
  Node operator()(Operand source, Operand target, const TransformerMasks& masks = {}) const;
  // Encodes the source. It is called once if the target is predicted step by step.
  Node encode(Operand source, const AttentionMasks& masks = {}) const { return encoder_(source, masks); }
  Node decode(Operand target, Operand memory, const DecoderMasks& masks = {}) const {
    return decoder_(target, memory, masks);
  }

 private:
  TransformerEncoder encoder_;
  TransformerDecoder decoder_;
};

}  // namespace plexaura::layers
