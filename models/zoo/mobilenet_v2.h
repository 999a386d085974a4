#pragma once

#include <vector>

#include "models/config/keys.h"
#include "models/zoo/image_net.h"

namespace plexaura {

struct MobileNetV2Options {
  double width = 1;  // factor of each layer's channels, in multiples of 8; at least 1280 in the last layer
  double dropout = 0.2;                  // probability of dropout before the linear layer
  bool synchronised_batch_norm = false;  // true: batch norm uses the samples of all ranks
};

// MobileNetV2: Sandler, Howard, Zhu, Zhmoginov and Chen, arXiv:1801.04381. Samples are [C, H, W]. Names are torchvision's:
// features.0.0.weight, features.1.conv.0.0.weight, features.18.1.running_mean, classifier.1.weight.
class MobileNetV2 final : public AveragedFeatures {
 public:
  // Throws UserError for samples that are not images.
  MobileNetV2(ModelInfo info, const MobileNetV2Options& options);
};

// Returns the keys of the section `model` for a MobileNetV2.
std::vector<Key> mobilenet_v2_keys(MobileNetV2Options& options);

std::unique_ptr<Model> make_mobilenet_v2(ModelInfo info, const MobileNetV2Options& options,
                                         const Section& yaml);

}  // namespace plexaura
