#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "training/data/sample_source.h"

namespace plexaura {

// Samples of classes. Each has the fields "samples" and "labels", int64 []. A label is in [0,
// class_names().size()). Derive from DatasetOf; this base class reads samples of any dtype.
class Dataset : public SampleSource {
 public:
  // The shape of one sample, without the batch axis.
  virtual Shape sample_shape() const = 0;
  virtual DType sample_dtype() const = 0;
  // Returns the class names; element i is the name of label i.
  virtual const std::vector<std::string>& class_names() const = 0;
  // Returns the label of a sample without reading the sample.
  virtual std::int64_t label(std::int64_t index) const = 0;
  // Writes the sample, row-major, to `sample`, and its label to `label`. Throws UserError that names the file
  // or record if it cannot be read; the contents of `sample` are unspecified then.
  virtual void read_sample(std::int64_t index, const SampleContext& context, std::span<std::byte> sample,
                           std::int64_t& label) const = 0;

  std::vector<Field> fields() const final;
  // Also throws UserError for a label without a class, and for a value that is not finite.
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const final;
};

// A Dataset whose samples have values of type T: float, or std::uint8_t for images, with one byte for each
// pixel and channel, which the model normalises (core/ops/normalise_image.h).
template <class T>
requires std::same_as<T, float> || std::same_as<T, std::uint8_t>
class DatasetOf : public Dataset {
 public:
  DType sample_dtype() const final { return dtype_of<T>; }
  // Reads as read_sample() does; `sample` has sample_shape().elements() values.
  virtual void read(std::int64_t index, const SampleContext& context, std::span<T> sample,
                    std::int64_t& label) const = 0;
  void read_sample(std::int64_t index, const SampleContext& context, std::span<std::byte> sample,
                   std::int64_t& label) const final {
    read(index, context, {reinterpret_cast<T*>(sample.data()), sample.size() / sizeof(T)}, label);
  }
};

// Returns the labels of all samples, in the order of their indices.
std::vector<std::int64_t> labels_of(const Dataset& dataset);

// Throws UserError that names the first difference unless both sets have the same classes in the same order.
// `train_name` and `validation_name` identify the sets for the user: a path or a key.
void check_same_classes(const Dataset& train, const std::string& train_name, const Dataset& validation,
                        const std::string& validation_name);

// Throws UserError unless the samples of both sets have the same shape. For the names see
// check_same_classes().
void check_same_shape(const Dataset& train, const std::string& train_name, const Dataset& validation,
                      const std::string& validation_name);

}  // namespace plexaura
