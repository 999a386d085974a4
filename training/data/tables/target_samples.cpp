#include "training/data/tables/target_samples.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

TargetSamples::TargetSamples(std::shared_ptr<const Dataset> rows, std::int64_t targets)
    : rows_(std::move(rows)), targets_(targets) {
  const TensorType row{rows_->sample_dtype(), rows_->sample_shape()};
  if (row.dtype != DType::float32 || row.shape.rank() != 1 || targets_ < 1 || row.shape[0] <= targets_)
    throw UserError(
        fmt::format("{} targets cannot be separated from rows of {}; give rows of float32 with the targets "
                    "after the features",
                    targets_, to_string(row)));
}

std::vector<Field> TargetSamples::fields() const {
  const std::int64_t features = rows_->sample_shape()[0] - targets_;
  return {{"samples", {DType::float32, {features}}}, {"targets", {DType::float32, {targets_}}}};
}

void TargetSamples::read_fields(std::int64_t index, const SampleContext& context,
                                std::span<const std::span<std::byte>> values) const {
  std::vector<std::byte> row(values[0].size() + values[1].size());
  std::int64_t label = 0;
  rows_->read_fields(index, context,
                     std::array{std::span(row), std::as_writable_bytes(std::span(&label, 1))});
  const auto targets = row.begin() + std::ssize(values[0]);
  std::copy(row.begin(), targets, values[0].begin());
  std::copy(targets, row.end(), values[1].begin());
}

}  // namespace plexaura
