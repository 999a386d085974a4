#pragma once

#include <string>
#include <vector>

#include "models/config/keys.h"
#include "models/zoo/image_net.h"

namespace plexaura {

struct ConvNextOptions {
  std::string size = "tiny";  // tiny, small, base or large
  // The probability that the last block leaves out what it adds to a sample; for blocks before it, it falls linearly to 0.
  double stochastic_depth = 0.1;
  double layer_scale = 1e-6;  // initial scale of what a block adds
};

// ConvNeXt: Liu, Mao, Wu, Feichtenhofer, Darrell and Xie, arXiv:2201.03545. Samples are [C, H, W], with 32 pixels or more
// along each axis. Names are torchvision's: features.0.0.weight, features.1.0.layer_scale, features.1.0.block.0.weight,
// classifier.2.weight.
class ConvNext final : public AveragedFeatures {
 public:
  // Throws UserError for another size, and for samples that are no images.
  ConvNext(ModelInfo info, const ConvNextOptions& options);
};

// The keys of the section `model` for a ConvNeXt.
std::vector<Key> convnext_keys(ConvNextOptions& options);

std::unique_ptr<Model> make_convnext(ModelInfo info, const ConvNextOptions& options, const Section& yaml);

}  // namespace plexaura
