#include "models/zoo/convnext.h"

#include <array>
#include <fmt/format.h>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/layer_norm.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "models/config/rules.h"
#include "models/layers/convolution.h"
#include "models/layers/linear.h"
#include "models/layers/normalisation.h"

namespace plexaura {

namespace {

constexpr double norm_epsilon = 1e-6;

struct ConvNextSize {
  std::array<std::int64_t, 4> blocks;
  std::array<std::int64_t, 4> widths;
};

const std::map<std::string, ConvNextSize>& known_sizes() {
  static const std::map<std::string, ConvNextSize> known{
      {"tiny", {{3, 3, 9, 3}, {96, 192, 384, 768}}},
      {"small", {{3, 3, 27, 3}, {96, 192, 384, 768}}},
      {"base", {{3, 3, 27, 3}, {128, 256, 512, 1024}}},
      {"large", {{3, 3, 27, 3}, {192, 384, 768, 1536}}},
  };
  return known;
}

const std::vector<std::string>& size_words() {
  static const std::vector<std::string> words{"tiny", "small", "base", "large"};
  return words;
}

const ConvNextSize& size_of(const std::string& size) {
  const auto found = known_sizes().find(size);
  if (found != known_sizes().end()) return found->second;
  throw UserError(
      fmt::format("there is no ConvNeXt of size '{}'; size is {}", size, joined_with_or(size_words())));
}

Node channels_last(Operand x) { return permute(x, {0, 2, 3, 1}); }
Node channels_first(Operand x) { return permute(x, {0, 3, 1, 2}); }

// Normalises the channels of each pixel (layer normalisation): [N, C, H, W] -> [N, C, H, W]. Parameters:
// weight and bias [C].
class ChannelNorm final : public layers::Layer {
 public:
  explicit ChannelNorm(std::int64_t channels)
      : weight_({channels}, Initialiser::ones()), bias_({channels}, Initialiser::zeros()) {}

  void members(MemberVisitor& visit) override {
    visit("weight", weight_);
    visit("bias", bias_);
  }

  Node operator()(Operand x) const override {
    const auto call = enter_unseen(x);
    Graph& graph = x.node().graph();
    return channels_first(
        layer_norm(channels_last(x), weight_.in(graph), bias_.in(graph), {.epsilon = norm_epsilon}));
  }

 private:
  Parameter weight_;
  Parameter bias_;
};

// Makes the axis of the channels the last one, or moves it back to axis 1.
class MoveChannels final : public layers::Layer {
 public:
  explicit MoveChannels(Node (*move)(Operand)) : move_(move) {}
  Node operator()(Operand x) const override {
    const auto call = enter_unseen(x);
    return move_(x);
  }

 private:
  Node (*move_)(Operand);
};

void append_linear(layers::Sequential& into, std::int64_t in, std::int64_t out) {
  into.append<layers::Linear>(
      in, out,
      layers::LinearOptions{.weight = Initialiser::normal(0.02), .bias_start = Initialiser::zeros()});
}

void append_conv(layers::Sequential& into, std::int64_t in, std::int64_t out, std::int64_t kernel,
                 layers::Conv2dOptions options) {
  options.weight = Initialiser::normal(0.02);
  options.bias_start = Initialiser::zeros();
  into.append<layers::Conv2d>(in, out, Size2d{kernel, kernel}, options);
}

// Sets whole samples of x [N, C, H, W] to 0 with probability p in training, and divides the others by 1 - p.
Node dropped_samples(const Node& x, double p) {
  Graph& graph = x.graph();
  if (p == 0 || graph.mode() != Mode::train) return x;
  const Node ones =
      broadcast_to(cast(graph.constant(Tensor::scalar(1.0F)), x.type().dtype), {x.shape()[0], 1, 1, 1});
  return x * dropout(ones, {.p = p});
}

// A block of ConvNeXt: a 7x7 convolution of each channel, a norm, and two linear layers of each pixel. The scaled result is
// added to the input. Members: layer_scale [C, 1, 1], block.0 (convolution), block.2 (norm), block.3 and block.5 (linear).
class ConvNextBlock final : public layers::Layer {
 public:
  ConvNextBlock(std::int64_t width, double layer_scale, double drop)
      : layer_scale_({width, 1, 1}, Initialiser::constant(layer_scale)), drop_(drop) {
    append_conv(block_, width, width, 7, {.padding = {3, 3}, .groups = width});
    block_.append<MoveChannels>(channels_last);
    block_.append<layers::LayerNorm>(width, layers::LayerNormOptions{.epsilon = norm_epsilon});
    append_linear(block_, width, 4 * width);
    block_.append<layers::Activation>("gelu");
    append_linear(block_, 4 * width, width);
    block_.append<MoveChannels>(channels_first);
  }

  void members(MemberVisitor& visit) override {
    visit("layer_scale", layer_scale_);
    visit("block", block_);
  }

  Node operator()(Operand x) const override {
    const auto call = enter_unseen(x);
    const Node y = layer_scale_.in(x.node().graph()) * block_(x);
    return x.node() + dropped_samples(y, drop_);
  }

 private:
  Parameter layer_scale_;
  double drop_;
  layers::Sequential block_;
};

}  // namespace

ConvNext::ConvNext(ModelInfo info, const ConvNextOptions& options) : AveragedFeatures(std::move(info)) {
  const ConvNextSize& size = size_of(options.size);
  const auto next_sequence = [&]() -> layers::Sequential& { return features().append<layers::Sequential>(); };
  layers::Sequential& stem = next_sequence();
  append_conv(stem, image_channels(sample_shape(), "convnext"), size.widths[0], 4, {.stride = {4, 4}});
  stem.append<ChannelNorm>(size.widths[0]);
  const std::int64_t total = std::accumulate(size.blocks.begin(), size.blocks.end(), std::int64_t{0});
  std::int64_t block = 0;
  for (std::size_t i = 0; i < size.widths.size(); ++i) {
    if (i > 0) {
      layers::Sequential& halving = next_sequence();
      halving.append<ChannelNorm>(size.widths[i - 1]);
      append_conv(halving, size.widths[i - 1], size.widths[i], 2, {.stride = {2, 2}});
    }
    layers::Sequential& stage = next_sequence();
    for (std::int64_t end = block + size.blocks[i]; block < end; ++block) {
      const double share = static_cast<double>(block) / static_cast<double>(total - 1);
      stage.append<ConvNextBlock>(size.widths[i], options.layer_scale, options.stochastic_depth * share);
    }
  }
  classifier().append<layers::LayerNorm>(size.widths.back(),
                                         layers::LayerNormOptions{.epsilon = norm_epsilon});
  classifier().append<layers::Flatten>();
  append_linear(classifier(), size.widths.back(), classes());
}

std::vector<Key> convnext_keys(ConvNextOptions& options) {
  return {
      {.name = "size",
       .into = &options.size,
       .words = size_words(),
       .meaning = "number and width of the layers: 28,589,128, 50,223,688, 88,591,464 or 197,767,336 "
                  "parameters with 1000 classes"},
      {.name = "stochastic_depth",
       .into = &options.stochastic_depth,
       .range = {.minimum = 0, .below = 1},
       .meaning = "the probability that the last block adds nothing to a sample of training; for blocks "
                  "before it, it falls linearly to 0"},
      {.name = "layer_scale",
       .into = &options.layer_scale,
       .range = {.minimum = 0, .maximum = 1},
       .meaning = "initial scale of what a block adds to its input"},
  };
}

std::unique_ptr<Model> make_convnext(ModelInfo info, const ConvNextOptions& options, const Section& yaml) {
  require_images(yaml, info.sample_shape, "convnext");
  return std::make_unique<ConvNext>(std::move(info), options);
}

}  // namespace plexaura
