#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "training/data/sample_source.h"

namespace plexaura {

// Samples of classes: each has the fields "samples" and "labels", int64 []. A label is in [0, class_names().size()).
// Derive from DatasetOf; this is what reads samples of any dtype.
class Dataset : public SampleSource {
 public:
  // The shape of one sample, without the batch axis.
  virtual Shape sample_shape() const = 0;
  virtual DType sample_dtype() const = 0;
  // The name of each label, at the label's place.
  virtual const std::vector<std::string>& class_names() const = 0;
  // The label of a sample, without reading the sample.
  virtual std::int64_t label(std::int64_t index) const = 0;
  // Writes the sample, row-major, over the bytes of `sample`, and its label over `label`. Throws UserError that names
  // the file or record when it cannot be read; what `sample` holds then is unspecified.
  virtual void read_sample(std::int64_t index, const SampleContext& context, std::span<std::byte> sample,
                           std::int64_t& label) const = 0;

  std::vector<Field> fields() const final;
  // Throws UserError, too, for a label that no class has, and for a value that is not finite.
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const final;
};

// A Dataset whose samples are values of T: float, or std::uint8_t for images, a byte a pixel and channel, which the
// model normalises (core/ops/normalise_image.h).
template <class T>
requires std::same_as<T, float> || std::same_as<T, std::uint8_t>
class DatasetOf : public Dataset {
 public:
  DType sample_dtype() const final { return dtype_of<T>; }
  // As read_sample(); `sample` has sample_shape().elements() values.
  virtual void read(std::int64_t index, const SampleContext& context, std::span<T> sample,
                    std::int64_t& label) const = 0;
  void read_sample(std::int64_t index, const SampleContext& context, std::span<std::byte> sample,
                   std::int64_t& label) const final {
    read(index, context, {reinterpret_cast<T*>(sample.data()), sample.size() / sizeof(T)}, label);
  }
};

// The labels of all samples, in the order of their indices.
std::vector<std::int64_t> labels_of(const Dataset& dataset);

// Throws UserError that names the first difference unless both sets have the same classes in the same order.
// `train_name` and `validation_name` are how the user knows the two: a path or a key.
void check_same_classes(const Dataset& train, const std::string& train_name, const Dataset& validation,
                        const std::string& validation_name);

// Throws UserError unless the samples of both sets have the same shape. The names as above.
void check_same_shape(const Dataset& train, const std::string& train_name, const Dataset& validation,
                      const std::string& validation_name);

}  // namespace plexaura
