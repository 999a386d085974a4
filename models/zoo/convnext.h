#pragma once

#include <string>
#include <vector>

#include "models/config/keys.h"
#include "models/zoo/image_net.h"

namespace plexaura {

struct ConvNextOptions {
  std::string size = "tiny";  // size of the net: tiny, small, base or large
  // The probability that the last block is left out for a sample, so that the sample passes unchanged. For
  // earlier blocks the probability falls linearly to 0.
  double stochastic_depth = 0.1;
  double layer_scale = 1e-6;  // initial scale of the outputs that a block adds to its input
};

// ConvNeXt: Liu, Mao, Wu, Feichtenhofer, Darrell and Xie, arXiv:2201.03545. Samples are [C, H, W], with 32 pixels or more
// along each axis. Names are torchvision's: features.0.0.weight, features.1.0.layer_scale, features.1.0.block.0.weight,
// classifier.2.weight.
class ConvNext final : public AveragedFeatures {
 public:
  // Throws UserError for an unknown size, and for samples that are not images.
  ConvNext(ModelInfo info, const ConvNextOptions& options);
};

// Returns the keys of the section `model` for a ConvNeXt.
std::vector<Key> convnext_keys(ConvNextOptions& options);

std::unique_ptr<Model> make_convnext(ModelInfo info, const ConvNextOptions& options, const Section& yaml);

}  // namespace plexaura
