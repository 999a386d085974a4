#include "models/layer_lists/layer_kinds.h"

#include <algorithm>
#include <fmt/format.h>

#include "models/layers/convolution.h"
#include "models/layers/embedding.h"
#include "models/layers/linear.h"
#include "models/layers/pool.h"
#include "models/layers/recurrent.h"

namespace plexaura {

namespace {

using Made = std::unique_ptr<layers::Layer>;

template <class L>
Made plain_layer(const LayerRequest&) {
  return std::make_unique<L>();
}

Made activation_layer(const LayerRequest& request) {
  return std::make_unique<layers::Activation>(request.keys.type);
}

void check_conv_groups(const LayerRequest& request) {
  const LayerKeys& keys = request.keys;
  const std::int64_t in = channels_of(request.x);
  if (in % keys.groups != 0 || keys.channels % keys.groups != 0)
    throw request.yaml.error(
        "groups",
        fmt::format("is {}, which must divide the {} channels that come in and the {} that go out evenly",
                    keys.groups, in, keys.channels));
}

template <template <class> class Kind, template <class> class Options, class Size>
Made conv_over(const LayerRequest& request) {
  const LayerKeys& keys = request.keys;
  Options<Size> options{.stride = Size(keys.stride), .padding = Size(keys.padding)};
  if constexpr (requires { options.output_padding; }) options.output_padding = Size(keys.output_padding);
  options.dilation = Size(keys.dilation);
  options.groups = keys.groups;
  options.bias = keys.bias;
  options.weight = request.weight;
  options.bias_start = request.bias;
  return std::make_unique<Kind<Size>>(channels_of(request.x), keys.channels, Size(keys.kernel), options);
}

// Makes a convolution over as many axes as the sample has after its channels, or over two if these are too few or too
// many.
template <template <class> class Kind, template <class> class Options>
Made conv_layer(const LayerRequest& request) {
  check_conv_groups(request);
  if (request.x.rank() == 3) return conv_over<Kind, Options, std::int64_t>(request);
  if (request.x.rank() == 5) return conv_over<Kind, Options, Size3d>(request);
  return conv_over<Kind, Options, Size2d>(request);
}

Made linear_layer(const LayerRequest& request) {
  const layers::LinearOptions options{
      .bias = request.keys.bias, .weight = request.weight, .bias_start = request.bias};
  return std::make_unique<layers::Linear>(features_of(request.x), request.keys.units, options);
}

template <class Options>
Options pool_options(const LayerKeys& keys) {
  return {.kernel = keys.kernel, .stride = keys.stride, .padding = keys.padding};
}

Made max_pool_layer(const LayerRequest& request) {
  return std::make_unique<layers::MaxPool2d>(pool_options<MaxPool2dOptions>(request.keys));
}

Made avg_pool_layer(const LayerRequest& request) {
  AvgPool2dOptions options = pool_options<AvgPool2dOptions>(request.keys);
  options.count_include_pad = request.keys.count_include_pad;
  return std::make_unique<layers::AvgPool2d>(options);
}

Made dropout_layer(const LayerRequest& request) { return std::make_unique<layers::Dropout>(request.keys.p); }

Made batch_norm_layer(const LayerRequest& request) {
  layers::BatchNormOptions options = request.keys.norm;
  options.frozen = request.keys.type == "frozen_batch_norm";
  return std::make_unique<layers::BatchNorm>(channels_of(request.x), options);
}

Made layer_norm_layer(const LayerRequest& request) {
  return std::make_unique<layers::LayerNorm>(features_of(request.x),
                                             layers::LayerNormOptions{.epsilon = request.keys.norm.epsilon});
}

Made rms_norm_layer(const LayerRequest& request) {
  return std::make_unique<layers::RmsNorm>(features_of(request.x));
}

Made group_norm_layer(const LayerRequest& request) {
  const std::int64_t channels = channels_of(request.x);
  const std::int64_t groups = request.keys.groups;
  if (channels % groups != 0)
    throw request.yaml.error(
        "groups", fmt::format("is {}, which must divide the {} channels evenly", groups, channels));
  return std::make_unique<layers::GroupNorm>(groups, channels,
                                             layers::GroupNormOptions{.epsilon = request.keys.norm.epsilon});
}

Made instance_norm_layer(const LayerRequest& request) {
  return std::make_unique<layers::InstanceNorm>(
      channels_of(request.x), layers::InstanceNormOptions{.epsilon = request.keys.norm.epsilon});
}

// Throws UserError unless a sample is a sequence [steps, features] whose weights can be counted.
void check_sequence(const LayerRequest& request) {
  constexpr std::int64_t most_features = 1 << 24;
  const Shape& x = request.x;
  if (x.rank() == 3 && x[2] <= most_features) return;
  throw request.yaml.error(
      "type",
      fmt::format(
          "is {}, which takes a sample [steps, features] with at most {} features, and it gets {}; a layer "
          "reshape or tokens can make one",
          request.keys.type, most_features,
          to_string(Shape(std::vector<std::int64_t>(x.begin() + 1, x.end())))));
}

template <class L>
Made recurrent_layer(const LayerRequest& request) {
  check_sequence(request);
  const LayerKeys& keys = request.keys;
  if (keys.recurrent_dropout != 0 && keys.depth == 1)
    throw request.yaml.error("dropout",
                             "has no effect with a depth of 1, because it acts between two layers; remove "
                             "it, or add a layer dropout");
  return std::make_unique<L>(
      features_of(request.x), keys.units,
      layers::RecurrentOptions{
          .layers = keys.depth, .dropout = keys.recurrent_dropout, .bidirectional = keys.bidirectional});
}

// A transformer's encoder with the causality that its YAML states.
class EncoderLayer final : public layers::Layer {
 public:
  EncoderLayer(const LayerKeys& keys, std::int64_t width)
      : width_(width),
        heads_(keys.heads),
        depth_(keys.depth),
        causal_(keys.causal),
        encoder_(keys.depth, width, keys.heads, keys.transformer,
                 keys.transformer.norm_first ? std::optional<layers::LayerNorm>(width) : std::nullopt) {}

  void members(MemberVisitor& visit) override { encoder_.members(visit); }
  Node operator()(Operand x) const override {
    const auto call = enter_unseen(x);
    return encoder_(x, {.is_causal = causal_});
  }
  std::unique_ptr<layers::IncrementalLayer> incremental(std::int64_t samples,
                                                        std::int64_t positions) const override {
    if (!causal_) return nullptr;
    std::vector<layers::AttentionCache> caches;
    for (std::int64_t i = 0; i < depth_; ++i) caches.emplace_back(samples, positions, width_, heads_);
    return std::make_unique<Incremental>(encoder_, std::move(caches));
  }

 private:
  class Incremental final : public layers::IncrementalLayer {
   public:
    Incremental(const layers::TransformerEncoder& encoder, std::vector<layers::AttentionCache> caches)
        : encoder_(encoder), caches_(std::move(caches)) {}

    void members(MemberVisitor& visit) override { visit("layers", caches_); }
    Node next(Operand x, Operand position) const override { return encoder_.next(x, caches_, position); }

   private:
    const layers::TransformerEncoder& encoder_;
    std::vector<layers::AttentionCache> caches_;
  };

  std::int64_t width_;
  std::int64_t heads_;
  std::int64_t depth_;
  bool causal_;
  layers::TransformerEncoder encoder_;
};

Made encoder_layer(const LayerRequest& request) {
  check_sequence(request);
  const std::int64_t width = features_of(request.x);
  if (width % request.keys.heads != 0)
    throw request.yaml.error(
        "heads", fmt::format("is {}, which must divide the {} features evenly", request.keys.heads, width));
  return std::make_unique<EncoderLayer>(request.keys, width);
}

Made embedding_layer(const LayerRequest& request) {
  return std::make_unique<layers::Embedding>(
      request.classes, request.keys.units,
      layers::EmbeddingOptions{.weight = Initialiser::normal(request.keys.deviation)});
}

Made positions_layer(const LayerRequest& request) {
  check_sequence(request);
  return std::make_unique<layers::Positions>(request.x[1], request.x[2]);
}

Made reshape_layer(const LayerRequest& request) {
  const std::int64_t elements = request.x.elements();
  std::int64_t wanted = 1;
  for (const std::int64_t extent : request.keys.shape)
    wanted = wanted > elements / extent ? elements + 1 : wanted * extent;
  if (wanted != elements)
    throw request.yaml.error(
        "shape", fmt::format("has {} elements than the {} that the layer gets; they must be equally many",
                             wanted > elements ? "more" : "fewer", elements));
  return std::make_unique<layers::ReshapeSamples>(request.keys.shape);
}

InterpolateMode linear_mode(std::int64_t rank) {
  if (rank == 3) return InterpolateMode::linear;
  return rank == 5 ? InterpolateMode::trilinear : InterpolateMode::bilinear;
}

Made upsample_layer(const LayerRequest& request) {
  InterpolateOptions options{.scale = {static_cast<double>(request.keys.scale)}};
  if (request.keys.smooth) options.mode = linear_mode(request.x.rank());
  return std::make_unique<layers::Upsample>(options);
}

Made residual_layer(const LayerRequest& request) {
  const std::string activation = request.keys.activation.value_or("relu");
  Made body = request.inner(request.keys.layers, "body");
  Made shortcut = request.yaml.has("shortcut") ? request.inner(request.keys.shortcut, "shortcut") : nullptr;
  return std::make_unique<layers::Residual>(
      std::move(body), std::move(shortcut),
      activation == "none" ? std::nullopt : std::optional<layers::Activation>(activation));
}

std::vector<LayerKind> make_kinds() {
  std::vector<LayerKind> kinds{
      {"conv", "conv", "convolution over the one, two or three axes after the channels",
       conv_layer<layers::Convolution, layers::ConvOptions>},
      {"linear", "fc", "linear map of the last axis", linear_layer, true},
      {"max_pool", "max_pool", "the largest value of each window", max_pool_layer},
      {"avg_pool", "avg_pool", "the mean of each window", avg_pool_layer},
      {"global_avg_pool", "global_avg_pool", "the mean of each channel", plain_layer<layers::GlobalAvgPool>},
  };
  for (const std::string& name : layers::Activation::names())
    kinds.push_back({name, name, "activation", activation_layer, true});
  const std::vector<LayerKind> others{
      {"flatten", "flatten", "turns [C, H, W] into one axis, as `linear` requires",
       plain_layer<layers::Flatten>},
      {"dropout", "dropout", "sets values to 0 in training, and scales the others", dropout_layer, true},
      {"batch_norm", "bn",
       "normalises each channel over the batch, for one value per channel, sequences, images and "
       "volumes",
       batch_norm_layer},
      {"standardise", "standardise", "scales each sample to mean 0 and variance 1 over the last axis",
       plain_layer<layers::Standardise>, true},
      {"residual", "residual", "relu(layers + shortcut); the two lists have the keys of this table",
       residual_layer, true},
      {"conv_transpose", "conv_transpose",
       "transposed convolution, which enlarges, over the one, two or three axes after the channels",
       conv_layer<layers::TransposedConvolution, layers::TransposedConvOptions>},
      {"upsample", "upsample", "enlarges the axes after the channels", upsample_layer},
      {"frozen_batch_norm", "bn",
       "`batch_norm` whose running statistics are used in training, too, and never change", batch_norm_layer},
      {"layer_norm", "layer_norm", "normalises the last axis, with a scale and a shift for each element",
       layer_norm_layer, true},
      {"rms_norm", "rms_norm",
       "divides the last axis by the root of its mean square, with a scale for each element", rms_norm_layer,
       true},
      {"group_norm", "group_norm", "normalises groups of channels in each sample", group_norm_layer},
      {"instance_norm", "instance_norm", "normalises each channel in each sample", instance_norm_layer},
      {"tokens", "tokens", "turns [C, H, W] into a sequence of pixels [H W, C]", plain_layer<layers::Tokens>},
      {"reshape", "reshape", "gives a sample another shape", reshape_layer},
      {"positions", "positions", "adds learned values to each step of a sequence [steps, features]",
       positions_layer, true},
      {"rnn", "rnn", "recurrent net with tanh over a sequence: the hidden values after each step",
       recurrent_layer<layers::Rnn>, true},
      {"lstm", "lstm", "long short-term memory over a sequence: the hidden values after each step",
       recurrent_layer<layers::Lstm>, true},
      {"gru", "gru", "gated recurrent unit over a sequence: the hidden values after each step",
       recurrent_layer<layers::Gru>, true},
      {"transformer_encoder", "encoder", "self-attention and two linear layers, for a sequence",
       encoder_layer, true},
      {"last_step", "last_step", "the last step of a sequence", plain_layer<layers::LastStep>},
      {"mean_of_steps", "mean_of_steps", "the mean over the steps of a sequence",
       plain_layer<layers::MeanOfSteps>},
      {"embedding", "embedding",
       "a row of a table for each token of a text: `[steps]` becomes `[steps, units]`", embedding_layer,
       true},
  };
  kinds.insert(kinds.end(), others.begin(), others.end());
  return kinds;
}

}  // namespace

const std::vector<LayerKind>& layer_kinds() {
  static const std::vector<LayerKind> kinds = make_kinds();
  return kinds;
}

const LayerKind& kind_of_layer(std::string_view type) {
  return *std::ranges::find(layer_kinds(), type, &LayerKind::type);
}

}  // namespace plexaura
