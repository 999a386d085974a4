#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace plexaura {

// What augmentation may depend on besides the sample's index. A sample is a function of (seed, epoch, index)
// alone, so that neither the number of workers nor that of ranks changes a run.
struct SampleContext {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
};

// Labelled samples with random access. All functions are const and may be called from several threads at
// once. An index is in [0, size()); a label is in [0, class_names().size()).
class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset();

  virtual std::int64_t size() const = 0;
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
};

// The labels of all samples, in the order of their indices.
std::vector<std::int64_t> labels_of(const Dataset& dataset);

// Throws UserError that names the first difference unless both sets have the same classes in the same order.
// `train_name` and `validation_name` are how the user knows the two: a path or a key.
void check_same_classes(const Dataset& train, const std::string& train_name, const Dataset& validation,
                        const std::string& validation_name);

}  // namespace plexaura
