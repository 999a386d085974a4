#pragma once

#include <memory>

#include "training/data/dataset.h"

namespace plexaura {

// Images of bytes with noise, from which a model learns to remove noise. Fields: uint8 "samples", the image with noise,
// and uint8 "targets", the image without it. Both have the shape of the image. The labels of the images are ignored.
// The noise is a function of the index, the seed and the epoch; with the seed and the epoch of validation it is always
// the same. Thread-safe.
class NoisySamples final : public SampleSource {
 public:
  // `deviation` is the standard deviation of the normally distributed noise, on a scale where a pixel goes
  // from 0 to 1. The noisy pixel is limited to this range and rounded to a byte. Throws UserError unless the
  // images are uint8, and unless 0 < deviation <= 1.
  NoisySamples(std::shared_ptr<const Dataset> images, double deviation);

  std::int64_t size() const override { return images_->size(); }
  std::vector<Field> fields() const override;
  // False, because drawing the noise takes much longer than copying an image.
  bool in_memory() const override { return false; }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override;

 private:
  std::shared_ptr<const Dataset> images_;
  double deviation_;
};

}  // namespace plexaura
