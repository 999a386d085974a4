#pragma once

#include <memory>

#include "training/data/dataset.h"

namespace plexaura {

// Samples of a regression, made of rows of numbers of which the last ones are the targets: float32 "samples"
// [features] and "targets" [targets]. The labels of the rows are ignored. Thread-safe.
class TargetSamples final : public SampleSource {
 public:
  // Throws UserError unless the rows are float32 [numbers] with more numbers than targets.
  TargetSamples(std::shared_ptr<const Dataset> rows, std::int64_t targets);

  std::int64_t size() const override { return rows_->size(); }
  std::vector<Field> fields() const override;
  bool in_memory() const override { return rows_->in_memory(); }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override;

 private:
  std::shared_ptr<const Dataset> rows_;
  std::int64_t targets_;
};

}  // namespace plexaura
