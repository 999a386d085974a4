#pragma once

#include <string_view>

#include "core/tensor/shape.h"
#include "models/config/keys.h"
#include "models/layers/pool.h"
#include "models/layers/sequential.h"
#include "models/zoo/model.h"

namespace plexaura {

// Functions that the nets for images, [C, H, W], share. `model` is the name of the model in a YAML file.

// Returns the number of channels of a sample. Throws UserError for a sample that is not an image.
std::int64_t image_channels(const Shape& sample, std::string_view model);

// Throws UserError, with line and column, for samples that are not images.
void require_images(const Section& yaml, const Shape& sample, std::string_view model);

// Returns the key `synchronised_batch_norm`.
Key synchronised_batch_norm_key(bool& into, Need needs = {});

// A net whose features are averaged over all pixels of an image and then classified. Subclasses append the layers. Members
// are torchvision's: features and classifier.
class AveragedFeatures : public Model {
 public:
  using Model::Model;

  void members(MemberVisitor& visit) final;

 protected:
  Node forward(Operand x) const final { return classifier_(global_avg_pool_(features_(x))); }
  layers::Sequential& features() { return features_; }
  layers::Sequential& classifier() { return classifier_; }

 private:
  layers::Sequential features_;
  layers::GlobalAvgPool global_avg_pool_;
  layers::Sequential classifier_;
};

}  // namespace plexaura
