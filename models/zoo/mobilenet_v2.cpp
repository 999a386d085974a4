#include "models/zoo/mobilenet_v2.h"

#include <algorithm>
#include <array>

#include "core/ops/activations.h"
#include "core/ops/binary.h"
#include "models/layers/batch_norm.h"
#include "models/layers/convolution.h"
#include "models/layers/linear.h"

namespace plexaura {

namespace {

// Computes min(max(x, 0), 6) for each element.
class Relu6 final : public layers::Layer {
 public:
  Node operator()(Operand x) const override {
    const auto call = enter_unseen(x);
    return relu6(x);
  }
};

struct ConvolutionShape {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
};

void append_conv_norm(layers::Sequential& into, const ConvolutionShape& shape, bool synchronised) {
  into.append<layers::Conv2d>(shape.in, shape.out, Size2d{shape.kernel, shape.kernel},
                              layers::Conv2dOptions{.stride = {shape.stride, shape.stride},
                                                    .padding = {shape.kernel / 2, shape.kernel / 2},
                                                    .groups = shape.groups,
                                                    .bias = false,
                                                    .weight = Initialiser::he_normal_fan_out()});
  into.append<layers::BatchNorm2d>(shape.out, layers::BatchNormOptions{.synchronised = synchronised});
}

// Returns a convolution with batch norm and ReLU6. Members: 0.weight, 1.weight, 1.bias, 1.running_mean, 1.running_var.
std::unique_ptr<layers::Sequential> activated(const ConvolutionShape& shape, bool synchronised) {
  auto made = std::make_unique<layers::Sequential>();
  append_conv_norm(*made, shape, synchronised);
  made->append<Relu6>();
  return made;
}

// A block of MobileNetV2: a 1x1 convolution to `expansion` times as many channels (left out if `expansion` is
// 1), a 3x3 convolution of each channel, and a 1x1 convolution. Adds its input to the result if both have the
// same shape. Members: conv.0.0, conv.0.1, ...
class InvertedResidual final : public layers::Layer {
 public:
  InvertedResidual(std::int64_t in, std::int64_t out, std::int64_t stride, std::int64_t expansion,
                   bool synchronised)
      : adds_input_(stride == 1 && in == out) {
    const std::int64_t hidden = in * expansion;
    if (expansion != 1) append(activated({.in = in, .out = hidden}, synchronised));
    append(activated({.in = hidden, .out = hidden, .kernel = 3, .stride = stride, .groups = hidden},
                     synchronised));
    append_conv_norm(conv_, {.in = hidden, .out = out}, synchronised);
  }

  void members(MemberVisitor& visit) override { visit("conv", conv_); }

  Node operator()(Operand x) const override {
    const auto call = enter_unseen(x);
    const Node y = conv_(x);
    return adds_input_ ? x.node() + y : y;
  }

 private:
  void append(std::unique_ptr<layers::Layer> layer) {
    conv_.add(std::to_string(conv_.size()), std::move(layer));
  }

  bool adds_input_;
  layers::Sequential conv_;
};

// Returns the multiple of 8 that is nearest to `channels`, or the next one if the nearest is below 90 %, as torchvision does.
std::int64_t rounded_channels(double channels) {
  const std::int64_t nearest = std::max<std::int64_t>(8, static_cast<std::int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + 8 : nearest;
}

struct MobileNetStage {
  std::int64_t expansion;
  std::int64_t channels;
  std::int64_t blocks;
  std::int64_t stride;  // stride of the first block
};
constexpr std::array<MobileNetStage, 7> mobilenet_stages{{{1, 16, 1, 1},
                                                          {6, 24, 2, 2},
                                                          {6, 32, 3, 2},
                                                          {6, 64, 4, 2},
                                                          {6, 96, 3, 1},
                                                          {6, 160, 3, 2},
                                                          {6, 320, 1, 1}}};

}  // namespace

MobileNetV2::MobileNetV2(ModelInfo info, const MobileNetV2Options& options)
    : AveragedFeatures(std::move(info)) {
  const bool synchronised = options.synchronised_batch_norm;
  const auto add = [&](std::unique_ptr<layers::Layer> layer) {
    features().add(std::to_string(features().size()), std::move(layer));
  };
  std::int64_t in = rounded_channels(32 * options.width);
  const std::int64_t image = image_channels(sample_shape(), "mobilenet_v2");
  add(activated({.in = image, .out = in, .kernel = 3, .stride = 2}, synchronised));
  for (const MobileNetStage& stage : mobilenet_stages) {
    const std::int64_t out = rounded_channels(static_cast<double>(stage.channels) * options.width);
    for (std::int64_t block = 0; block < stage.blocks; ++block) {
      add(std::make_unique<InvertedResidual>(in, out, block == 0 ? stage.stride : 1, stage.expansion,
                                             synchronised));
      in = out;
    }
  }
  const std::int64_t last = rounded_channels(1280 * std::max(1.0, options.width));
  add(activated({.in = in, .out = last}, synchronised));
  classifier().append<layers::Dropout>(options.dropout);
  classifier().append<layers::Linear>(
      last, classes(),
      layers::LinearOptions{.weight = Initialiser::normal(0.01), .bias_start = Initialiser::zeros()});
}

std::vector<Key> mobilenet_v2_keys(MobileNetV2Options& options) {
  return {
      {.name = "width",
       .into = &options.width,
       .range = {.maximum = 1024, .above = 0},
       .meaning = "factor of the number of channels in each layer, which is rounded to a multiple of 8; the "
                  "last convolution has 1280 channels at least"},
      {.name = "dropout",
       .into = &options.dropout,
       .range = {.minimum = 0, .below = 1},
       .meaning = "the probability that a value before the linear layer is dropped"},
      synchronised_batch_norm_key(options.synchronised_batch_norm),
  };
}

std::unique_ptr<Model> make_mobilenet_v2(ModelInfo info, const MobileNetV2Options& options,
                                         const Section& yaml) {
  require_images(yaml, info.sample_shape, "mobilenet_v2");
  return std::make_unique<MobileNetV2>(std::move(info), options);
}

}  // namespace plexaura
