#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "training/data/dataset.h"
#include "training/data/random.h"

namespace plexaura {

// The parameters of mixing. If both are above 0, each step uses one of them, with probability 1/2.
struct MixOptions {
  double mixup_alpha = 0;   // MixUp(alpha): the weighted mean of two images
  double cutmix_alpha = 0;  // CutMix(alpha): a rectangle of another image

  bool mixes() const { return mixup_alpha > 0 || cutmix_alpha > 0; }
};

// The mixing of all samples of a step. `share` is the share of a sample itself, and the rest is that of its partner.
struct Mix {
  double share = 1;
  // CutMix: this part of the image is the partner's. MixUp, for which `is_cut` is false, has none.
  bool is_cut = false;
  std::int64_t left = 0, top = 0, right = 0, bottom = 0;
};

// Draws the mix of a step as torchvision's MixUp and CutMix draw that of a batch: the share has the distribution
// Beta(alpha, alpha), and that of CutMix is then the share of the pixels. It is a function of the arguments.
Mix draw_mix(const MixOptions& options, std::int64_t width, std::int64_t height, Random& random);

// Images of bytes, each mixed with the sample before it in the batch of the step over all ranks; the first one is mixed
// with the last one. Besides "samples" and "labels" they have the fields "partner_labels", int64 [], and "label_share",
// float32 []: the share of the label in the target. A sample without a partner has the share 1: in validation, or if the
// partner cannot be read. Values are rounded to bytes after mixing. Thread-safe.
class MixedSamples final : public SampleSource {
 public:
  // Without `mixes()`, the samples are not mixed, but have the same fields. Throws UserError unless samples are uint8
  // [channels, height, width], and for a negative alpha or one above 1000.
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
