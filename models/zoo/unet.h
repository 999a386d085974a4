#pragma once

#include <memory>
#include <vector>

#include "models/config/keys.h"
#include "models/layers/convolution.h"
#include "models/layers/sequential.h"
#include "models/zoo/model.h"

namespace plexaura {

struct UNetOptions {
  std::int64_t depth = 4;  // number of times that height and width are halved
  // Number of channels of the first level; each level has twice as many as the one before.
  std::int64_t width = 64;
  bool synchronised_batch_norm = false;  // true: batch norm uses the samples of all ranks
};

// U-Net, from images [C, H, W] to images of the same shape or, for a segmentation, to [classes, H, W]: Ronneberger,
// Fischer and Brox, arXiv:1505.04597, in the variant of github.com/milesial/Pytorch-UNet with bilinear=False: padded
// convolutions with batch norm. Height and width are multiples of 2^depth. Parameters have the names of that variant:
// inc.double_conv.0.weight, down1.maxpool_conv.1.double_conv.1.running_mean, up1.up.bias, up1.conv.double_conv.0.weight,
// outc.conv.weight.
class UNet final : public Model {
 public:
  // Throws UserError for samples that are no images, or whose height and width are no multiples of 2^depth; for a task
  // other than reconstruction and segmentation; and for a depth that is not from 1 to 8 or a width that is not from 1 to
  // 1024.
  UNet(ModelInfo info, const UNetOptions& options);

  void members(MemberVisitor& visit) override;

 protected:
  Node forward(Operand x) const override;

 private:
  // For each level, from the largest to the smallest image: two convolutions with batch norm and ReLU.
  std::vector<std::unique_ptr<layers::Sequential>> encoders_;
  // For each level but the largest, beginning with the smallest image: the convolution to the next larger
  // image.
  std::vector<std::unique_ptr<layers::ConvTranspose2d>> ups_;
  std::vector<std::unique_ptr<layers::Sequential>> decoders_;
  layers::Conv2d last_;
};

// Returns the keys of the section `model` for a U-Net.
std::vector<Key> unet_keys(UNetOptions& options);

std::unique_ptr<Model> make_unet(ModelInfo info, const UNetOptions& options, const Section& yaml);

}  // namespace plexaura
