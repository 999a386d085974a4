#include "training/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

namespace {

void check_label(std::int64_t index, std::int64_t label, std::int64_t classes) {
  if (label < 0 || label >= classes)
    throw UserError(
        fmt::format("sample {} has label {} and there are {} classes, so that labels go from 0 to {}; "
                    "correct the label or name its class",
                    index, label, classes, classes - 1));
}

void check_finite(std::int64_t index, std::span<const std::byte> bytes) {
  const std::span sample(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
  const auto wrong = std::ranges::find_if(sample, [](float value) { return !std::isfinite(value); });
  if (wrong != sample.end())
    throw UserError(
        fmt::format("value {} of sample {} is {}; the values of samples are finite, so correct the data",
                    wrong - sample.begin(), index, *wrong));
}

void require_classes_of(const std::vector<std::string>& classes, const std::string& place,
                        const std::vector<std::string>& here, const std::string& lacks) {
  for (const std::string& name : classes)
    if (std::ranges::find(here, name) == here.end())
      throw UserError(fmt::format(
          "{} has no class '{}', which {} has; both sets must have the same classes, so add it or "
          "remove the other",
          lacks, name, place));
}

}  // namespace

std::vector<Field> Dataset::fields() const {
  return {{"samples", {sample_dtype(), sample_shape()}}, {"labels", {DType::int64, {}}}};
}

void Dataset::read_fields(std::int64_t index, const SampleContext& context,
                          std::span<const std::span<std::byte>> values) const {
  auto& label = *reinterpret_cast<std::int64_t*>(values[1].data());
  read_sample(index, context, values[0], label);
  check_label(index, label, static_cast<std::int64_t>(class_names().size()));
  if (sample_dtype() == DType::float32) check_finite(index, values[0]);
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
  require_classes_of(expected, train_name, found, validation_name);
  require_classes_of(found, validation_name, expected, train_name);
  const auto difference = std::ranges::mismatch(expected, found);
  if (difference.in1 != expected.end())
    throw UserError(fmt::format(
        "{}: class {} is '{}', but in {} it is '{}'; both sets must have the same classes in the same order",
        validation_name, difference.in2 - found.begin(), *difference.in2, train_name, *difference.in1));
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
