#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "training/data/sample_source.h"

namespace plexaura {

// Samples in memory: named tensors whose first axis numbers the samples, with any number of inputs and
// targets of any type. Thread-safe.
class TensorDataset final : public SampleSource {
 public:
  // Throws UserError if there is no tensor, a tensor is a scalar, a name is given twice, the tensors have different
  // numbers of samples, or a value is NaN or infinite.
  explicit TensorDataset(std::vector<std::pair<std::string, Tensor>> fields);

  std::int64_t size() const override { return size_; }
  std::vector<Field> fields() const override;
  bool in_memory() const override { return true; }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override;

 private:
  std::vector<std::pair<std::string, Tensor>> fields_;
  std::int64_t size_;
};

// Makes a TensorDataset for a Trainer: `.train = tensor_dataset({{"x", xs}, {"y", ys}})`.
std::shared_ptr<const SampleSource> tensor_dataset(std::vector<std::pair<std::string, Tensor>> fields);

}  // namespace plexaura
