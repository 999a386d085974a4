#include "training/data/dataset.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/error.h"

namespace plexaura {

std::vector<Field> Dataset::fields() const {
  return {{"samples", {DType::float32, sample_shape()}}, {"labels", {DType::int64, {}}}};
}

void Dataset::read_fields(std::int64_t index, const SampleContext& context,
                          std::span<const std::span<std::byte>> values) const {
  const std::span sample(reinterpret_cast<float*>(values[0].data()), values[0].size() / sizeof(float));
  read(index, context, sample, *reinterpret_cast<std::int64_t*>(values[1].data()));
}

std::vector<std::int64_t> labels_of(const Dataset& dataset) {
  std::vector<std::int64_t> labels(static_cast<std::size_t>(dataset.size()));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = dataset.label(static_cast<std::int64_t>(i));
  return labels;
}

void check_same_classes(const Dataset& train, const std::string& train_name, const Dataset& validation,
                        const std::string& validation_name) {
  const auto& expected = train.class_names();
  const auto& found = validation.class_names();
  const auto difference = std::ranges::mismatch(expected, found);
  if (difference.in1 == expected.end() && difference.in2 == found.end()) return;
  const auto name = [](auto place, const auto& names) {
    return place == names.end() ? std::string("no such class") : fmt::format("'{}'", *place);
  };
  throw UserError(fmt::format(
      "{}: class {} is {} where {} has {}; both sets must have the same classes, so add what is missing or "
      "remove what is too much",
      validation_name, difference.in2 - found.begin(), name(difference.in2, found), train_name,
      name(difference.in1, expected)));
}

void check_same_shape(const Dataset& train, const std::string& train_name, const Dataset& validation,
                      const std::string& validation_name) {
  const Shape expected = train.sample_shape();
  const Shape found = validation.sample_shape();
  if (found != expected)
    throw UserError(
        fmt::format("{}: its samples have the shape {} and those of {} have {}; give validation samples of "
                    "the same shape",
                    validation_name, to_string(found), train_name, to_string(expected)));
}

}  // namespace plexaura
