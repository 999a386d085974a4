#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training/data/arrays/npy.h"
#include "training/data/dataset.h"

namespace plexaura {

// The axis of the channels in an array of images: [N, C, H, W] or [N, H, W, C].
enum class ChannelAxis : std::uint8_t { first, last };

// The labels of samples.
struct ArrayLabels {
  std::vector<std::int64_t> labels;
  std::vector<std::string> class_names;
};

// Reads labels from an array [N] or [N, 1] of whole numbers or text. Classes are the different labels, sorted,
// or `classes` if it is not empty. Throws UserError for an array of another kind, and for a label that is not in
// `classes`.
ArrayLabels read_labels(const NpyArray& array, const std::vector<std::string>& classes);

// Samples of numbers in an array [N, ...] of any type of numbers: float32 [...]. Images [N, C, H, W] or
// [N, H, W, C] are float32 [C, H, W]. Each sample is read at its place in the array's ByteRange. With
// targets, numbers in an array [N] or [N, targets], the samples must be [N, features]; a sample is then float32
// [features + targets], the targets last, and every label is 0: TargetSamples separates them. The constructors throw
// UserError that names the array for other shapes and for different numbers of samples. For text, the first
// constructor throws, and with targets read() does. Thread-safe.
class ArrayNumbers final : public DatasetOf<float> {
 public:
  ArrayNumbers(NpyArray samples, ArrayLabels labels, std::optional<ChannelAxis> channels);
  ArrayNumbers(NpyArray samples, NpyArray targets);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.labels.size()); }
  Shape sample_shape() const override { return shape_; }
  const std::vector<std::string>& class_names() const override { return labels_.class_names; }
  std::int64_t label(std::int64_t index) const override {
    return labels_.labels[static_cast<std::size_t>(index)];
  }
  void read(std::int64_t index, const SampleContext& context, std::span<float> sample,
            std::int64_t& label) const override;

 private:
  NpyArray samples_;
  std::optional<NpyArray> targets_;
  ArrayLabels labels_;
  bool is_channels_last_ = false;
  Shape shape_;
};

// Images of bytes in an array of type u1: [N, H, W], [N, C, H, W] or [N, H, W, C]. A sample is uint8 [C, H, W],
// where C is 1 for the first. For errors see ArrayNumbers. Thread-safe.
class ArrayImages final : public DatasetOf<std::uint8_t> {
 public:
  ArrayImages(NpyArray samples, ArrayLabels labels, std::optional<ChannelAxis> channels);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.labels.size()); }
  Shape sample_shape() const override { return shape_; }
  const std::vector<std::string>& class_names() const override { return labels_.class_names; }
  std::int64_t label(std::int64_t index) const override {
    return labels_.labels[static_cast<std::size_t>(index)];
  }
  void read(std::int64_t index, const SampleContext& context, std::span<std::uint8_t> sample,
            std::int64_t& label) const override;

 private:
  NpyArray samples_;
  ArrayLabels labels_;
  bool is_channels_last_ = false;
  Shape shape_;
};

// True for an array that ArrayImages takes. Other arrays are numbers.
bool has_image_bytes(const NpyArray& samples);

}  // namespace plexaura
