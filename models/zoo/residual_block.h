#pragma once

#include <vector>

#include "models/layers/batch_norm.h"
#include "models/layers/convolution.h"

namespace plexaura {

// A block of a ResNet: convolutions, each with batch norm, and ReLU between them. The block's input is added
// to their result, and ReLU follows. If the shapes differ, the input first passes a 1x1 convolution with
// batch norm. Members: conv1, bn1, conv2, bn2 (, conv3, bn3), downsample.0, downsample.1.
class ResidualBlock final : public layers::Layer {
 public:
  struct Options {
    std::int64_t in = 0;
    std::int64_t width = 0;   // number of output channels, or a quarter of it in a bottleneck
    std::int64_t stride = 1;  // stride of the first 3x3 convolution
    bool bottleneck = true;
    bool zero_init = true;      // true: the last batch norm starts with the scale 0
    bool synchronised = false;  // true: batch norm uses the samples of all ranks
  };
  explicit ResidualBlock(const Options& options);

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;

  static std::int64_t out_channels(std::int64_t width, bool bottleneck) {
    return bottleneck ? 4 * width : width;
  }

 private:
  struct ConvNorm {
    ConvNorm(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
             const layers::BatchNormOptions& norm_options);
    Node operator()(Operand x) const { return norm(conv(x)); }

    layers::Conv2d conv;
    layers::BatchNorm2d norm;
  };
  void append(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
              const layers::BatchNormOptions& norm);

  std::vector<std::unique_ptr<ConvNorm>> convolutions_;
  std::unique_ptr<ConvNorm> downsample_;
};

}  // namespace plexaura
