#pragma once

#include <vector>

#include "models/config/keys.h"
#include "models/layers/sequential.h"
#include "models/zoo/model.h"

namespace plexaura {

struct VggOptions {
  std::int64_t depth = 16;               // number of layers with weights: 11, 13, 16 or 19
  bool batch_norm = false;               // true: batch norm follows each convolution
  double dropout = 0.5;                  // probability of dropout after the two hidden linear layers
  bool synchronised_batch_norm = false;  // true: batch norm uses the samples of all ranks
};

// VGG networks: Simonyan and Zisserman, arXiv:1409.1556. Samples are [C, H, W], with 32 pixels or more along each axis. As
// in torchvision, images of any size are averaged to 7x7 pixels before the linear layers. Names are torchvision's:
// features.0.weight, classifier.6.bias.
class Vgg final : public Model {
 public:
  // Throws UserError for another depth, and for samples that are not images.
  Vgg(ModelInfo info, const VggOptions& options);

  void members(MemberVisitor& visit) override;

 protected:
  Node forward(Operand x) const override;

 private:
  layers::Sequential features_;
  layers::Sequential classifier_;
};

// Returns the keys of the section `model` for a VGG network.
std::vector<Key> vgg_keys(VggOptions& options);

std::unique_ptr<Model> make_vgg(ModelInfo info, const VggOptions& options, const Section& yaml);

}  // namespace plexaura
