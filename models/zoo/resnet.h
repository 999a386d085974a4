#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/config/keys.h"
#include "models/layers/batch_norm.h"
#include "models/layers/convolution.h"
#include "models/layers/functional.h"
#include "models/layers/linear.h"
#include "models/layers/pool.h"
#include "models/zoo/model.h"

namespace plexaura {

struct ResNetOptions {
  // Number of blocks in each stage; each stage after the first halves height and width.
  std::vector<std::int64_t> stages{3, 4, 6, 3};
  // True: a block has convolutions of 1x1, 3x3, and 1x1 with four times the width; false: two of 3x3.
  bool bottleneck = true;
  // ResidualBlock::Options::width of the first stage; each stage has twice the width of the one before.
  std::int64_t width = 64;
  // True: the last batch norm of each block starts with the scale 0, so that blocks without downsample start
  // as identities.
  bool zero_init_residual = true;
  bool synchronised_batch_norm = false;  // true: batch norm uses the samples of all ranks

  // Returns the options of the paper for depth 18, 34, 50, 101 or 152. Throws UserError for another depth.
  static ResNetOptions of_depth(std::int64_t depth);
};

// Residual networks: He, Zhang, Ren and Sun, arXiv:1512.03385, in the form that published weights have
// ("v1.5": in a bottleneck, the 3x3 convolution has the stride). Samples are [C, H, W]. Names are
// torchvision's: conv1.weight, bn1.running_mean, layer1.0.conv1.weight, layer1.0.downsample.0.weight,
// fc.bias.
class ResNet final : public Model {
 public:
  ResNet(ModelInfo info, const ResNetOptions& options);

  void members(MemberVisitor& visit) override;

 protected:
  Node forward(Operand x) const override;

 private:
  using Stage = std::vector<std::unique_ptr<layers::Layer>>;

  layers::Conv2d conv1_;
  layers::BatchNorm2d bn1_;
  layers::Activation relu_{"relu"};
  layers::MaxPool2d max_pool_;
  std::vector<Stage> stages_;
  layers::GlobalAvgPool global_avg_pool_;
  std::unique_ptr<layers::Linear> fc_;
};

// The values of the keys of the section `model` for a ResNet.
struct ResNetKeys {
  std::optional<std::string> depth = {};
  std::optional<std::vector<std::int64_t>> stages = {};
  ResNetOptions options = {};
};

std::vector<Key> resnet_keys(ResNetKeys& keys);

std::unique_ptr<Model> make_resnet(ModelInfo info, ResNetKeys keys, const Section& yaml);

}  // namespace plexaura
