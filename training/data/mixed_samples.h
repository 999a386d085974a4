#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "training/data/dataset.h"
#include "training/data/random.h"

namespace plexaura {

// The parameters of mixing. If both are above 0, each step uses one of them, with probability 1/2.
struct MixOptions {
  double mixup_alpha = 0;   // alpha of MixUp, which takes the weighted mean of two images
  double cutmix_alpha = 0;  // alpha of CutMix, which pastes a rectangle of another image

  bool mixes() const { return mixup_alpha > 0 || cutmix_alpha > 0; }
};

// The mixing of all samples of a step. Each sample is mixed with a partner. `share` is the sample's own
// share, and the partner has the rest.
struct Mix {
  double share = 1;
  // True for CutMix: the rectangle below is taken from the partner. False for MixUp, which has no rectangle.
  bool is_cut = false;
  std::int64_t left = 0, top = 0, right = 0, bottom = 0;
};

// Draws the mix of a step in the same way as torchvision's MixUp and CutMix draw the mix of a batch. The
// share has the distribution Beta(alpha, alpha); for CutMix it is then replaced by the share of the pixels.
// The result depends only on the arguments.
Mix draw_mix(const MixOptions& options, std::int64_t width, std::int64_t height, Random& random);

// Images of bytes, each mixed with the sample before it in the batch of the step over all ranks; the first one is mixed
// with the last one. Besides "samples" and "labels" they have the fields "partner_labels", int64 [], and "label_share",
// float32 []: the share of the label in the target. A sample that is not mixed has the share 1: with options that do
// not mix, as for validation, outside of a batch, and if the partner cannot be read. Values are rounded to bytes
// after mixing. Thread-safe.
class MixedSamples final : public SampleSource {
 public:
  // If `mixes()` is false, the samples are not mixed, but have the same fields. Throws UserError unless
  // samples are uint8 [channels, height, width], and for an alpha that is negative or above 1000.
  MixedSamples(std::shared_ptr<const Dataset> images, const MixOptions& options);

  std::int64_t size() const override { return images_->size(); }
  std::vector<Field> fields() const override;
  bool in_memory() const override { return images_->in_memory(); }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override;

 private:
  std::shared_ptr<const Dataset> images_;
  MixOptions options_;
  std::uint64_t id_;  // a number that no other object of the process has
};

}  // namespace plexaura
