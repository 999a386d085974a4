#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "training/data/sample_source.h"

namespace plexaura {

// Samples of classes: each has the fields "samples", float32, and "labels", int64 []. A label is in
// [0, class_names().size()).
class Dataset : public SampleSource {
 public:
  // The shape of one sample, without the batch axis.
  virtual Shape sample_shape() const = 0;
  // The name of each label, at the label's place.
  virtual const std::vector<std::string>& class_names() const = 0;
  // The label of a sample, without reading the sample.
  virtual std::int64_t label(std::int64_t index) const = 0;
  // Writes the sample, row-major, over `sample` (sample_shape().elements() values), and its label over
  // `label`. Throws UserError that names the file or record when it cannot be read; what `sample` holds then
  // is unspecified.
  virtual void read(std::int64_t index, const SampleContext& context, std::span<float> sample,
                    std::int64_t& label) const = 0;

  std::vector<Field> fields() const final;
  // Throws UserError, too, for a label that no class has, and for a value that is not finite.
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const final;
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
