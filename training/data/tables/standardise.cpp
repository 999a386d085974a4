#include "training/data/tables/standardise.h"

#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "core/base/error.h"
#include "training/files/shortage.h"

namespace plexaura {

namespace {

void require_floats(const Dataset& dataset) {
  if (dataset.sample_dtype() != DType::float32)
    throw UserError(fmt::format(
        "samples of {} were to be standardised, which is for float32; the model normalises images: "
        "normalise_image()",
        name_of(dataset.sample_dtype())));
}

}  // namespace

bool read_values(const Dataset& samples, std::int64_t index, std::span<std::byte> values, OnError on_error) {
  try {
    std::int64_t label = 0;
    samples.read_sample(index, {}, values, label);
    return true;
  } catch (const LimitReached&) {
    throw;
  } catch (const UserError&) {
    if (on_error == OnError::fail) throw;
    return false;
  }
}

Standardisation measure_standardisation(const Dataset& training_set, OnError on_error) {
  require_floats(training_set);
  if (training_set.size() == 0)
    throw UserError("a training set without samples has no mean and standard deviation; give it samples");
  const auto width = static_cast<std::size_t>(training_set.sample_shape().elements());
  std::vector<double> mean(width);
  std::vector<double> squares(width);  // sums of squared differences from the mean, by Welford's method
  std::vector<std::int64_t> counts(width);
  std::vector<float> sample(width);
  for (std::int64_t index = 0; index < training_set.size(); ++index) {
    if (!read_values(training_set, index, std::as_writable_bytes(std::span(sample)), on_error)) continue;
    for (std::size_t i = 0; i < width; ++i) {
      if (std::isnan(sample[i])) continue;
      const double difference = sample[i] - mean[i];
      mean[i] += difference / static_cast<double>(++counts[i]);
      squares[i] += difference * (sample[i] - mean[i]);
    }
  }
  Standardisation result;
  for (std::size_t i = 0; i < width; ++i) {
    if (counts[i] == 0)
      throw UserError(
          fmt::format("value {} is missing in each training sample, so that it has no mean; give more "
                      "samples, or leave out its column",
                      i));
    const auto stddev = static_cast<float>(std::sqrt(squares[i] / static_cast<double>(counts[i])));
    result.mean.push_back(static_cast<float>(mean[i]));
    // Kernels may treat a number below the smallest normal one as 0.
    result.stddev.push_back(std::isnormal(stddev) ? stddev : 1);
  }
  return result;
}

StandardisedDataset::StandardisedDataset(std::shared_ptr<const Dataset> raw, Standardisation standardisation,
                                         bool fills_missing)
    : raw_(std::move(raw)), standardisation_(std::move(standardisation)), fills_missing_(fills_missing) {
  require_floats(*raw_);
  const auto width = static_cast<std::size_t>(raw_->sample_shape().elements());
  if (standardisation_.mean.size() != width || standardisation_.stddev.size() != width)
    throw UserError(fmt::format(
        "a standardisation of {} values was given for samples of {}; measure it over the training "
        "set of the same data",
        standardisation_.mean.size(), width));
}

void StandardisedDataset::read(std::int64_t index, const SampleContext& context, std::span<float> sample,
                               std::int64_t& label) const {
  raw_->read_sample(index, context, std::as_writable_bytes(sample), label);
  for (std::size_t i = 0; i < sample.size(); ++i)
    sample[i] = fills_missing_ && std::isnan(sample[i])
                    ? 0
                    : (sample[i] - standardisation_.mean[i]) / standardisation_.stddev[i];
}

}  // namespace plexaura
