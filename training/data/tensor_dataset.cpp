#include "training/data/tensor_dataset.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/vm/watch.h"

namespace plexaura {

namespace {

// Returns the number of samples, which must be the same in all tensors.
std::int64_t checked_size(const std::vector<std::pair<std::string, Tensor>>& fields) {
  if (fields.empty()) throw UserError("a TensorDataset was made without tensors; give it at least one");
  for (auto field = fields.begin(); field != fields.end(); ++field) {
    const auto& [name, tensor] = *field;
    if (std::any_of(fields.begin(), field, [&](const auto& other) { return other.first == name; }))
      throw UserError(fmt::format("TensorDataset: '{}' is given twice; give each tensor its own name", name));
    if (tensor.shape().rank() == 0)
      throw UserError(
          fmt::format("TensorDataset: '{}' is a scalar; its first axis must be that of the samples", name));
    if (const auto& [first_name, first] = fields.front(); tensor.shape()[0] != first.shape()[0])
      throw UserError(
          fmt::format("TensorDataset: '{}' is {} and '{}' is {}; the first axis of each is that of "
                      "the samples, so that both must be equally long",
                      name, to_string(tensor.type()), first_name, to_string(first.type())));
    if (is_floating(tensor.dtype()) && !all_finite(tensor))
      throw UserError(
          fmt::format("TensorDataset: '{}' has {}; the values of samples are finite, so correct the data",
                      name, first_bad(tensor)));
  }
  return fields.front().second.shape()[0];
}

}  // namespace

TensorDataset::TensorDataset(std::vector<std::pair<std::string, Tensor>> fields)
    : fields_(std::move(fields)), size_(checked_size(fields_)) {}

std::vector<Field> TensorDataset::fields() const {
  std::vector<Field> fields;
  for (const auto& [name, tensor] : fields_) {
    const Shape& shape = tensor.shape();
    fields.push_back(
        {name, {tensor.dtype(), Shape(std::vector<std::int64_t>(shape.begin() + 1, shape.end()))}});
  }
  return fields;
}

void TensorDataset::read_fields(std::int64_t index, const SampleContext& /*context*/,
                                std::span<const std::span<std::byte>> values) const {
  for (std::size_t i = 0; i < fields_.size(); ++i)
    std::memcpy(values[i].data(),
                fields_[i].second.data() + static_cast<std::size_t>(index) * values[i].size(),
                values[i].size());
}

std::shared_ptr<const SampleSource> tensor_dataset(std::vector<std::pair<std::string, Tensor>> fields) {
  return std::make_shared<TensorDataset>(std::move(fields));
}

}  // namespace plexaura
