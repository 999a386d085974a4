#pragma once

#include <vector>

#include "models/layers/batch_norm2d.h"
#include "models/layers/conv2d.h"

namespace plexaura {

// A block of a ResNet: convolutions, each with batch norm, with ReLU between them; their result and the
// block's input are added, and ReLU follows. Where the shapes differ, the input goes through a 1x1
// convolution with batch norm first. Members: conv1, bn1, conv2, bn2 (, conv3, bn3), downsample.0,
// downsample.1.
class ResidualBlock final : public layers::Layer {
 public:
  struct Options {
    std::int64_t in = 0;
    std::int64_t width = 0;   // output channels are as many, or four times as many in a bottleneck
    std::int64_t stride = 1;  // of the (first) 3x3 convolution
    bool bottleneck = true;
    bool zero_init = true;      // the last batch-norm scale
    bool synchronised = false;  // batch norm over all ranks
  };
  explicit ResidualBlock(const Options& options);

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) override;

  static std::int64_t out_channels(std::int64_t width, bool bottleneck) {
    return bottleneck ? 4 * width : width;
  }

 private:
  struct ConvNorm {
    ConvNorm(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
             const layers::BatchNorm2dOptions& norm_options);
    Node operator()(Operand x) { return norm(conv(x)); }

    layers::Conv2d conv;
    layers::BatchNorm2d norm;
  };
  void append(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
              const layers::BatchNorm2dOptions& norm);

  std::vector<std::unique_ptr<ConvNorm>> convolutions_;
  std::unique_ptr<ConvNorm> downsample_;
};

}  // namespace plexaura
