#include "training/data/dataset.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <limits>

#include "tests/training/data/data_support.h"
#include "training/data/loader.h"
#include "training/data/subset.h"
#include "training/data/tables/standardise.h"

namespace plexaura::testing::dataset_test {

namespace {

// Two samples of three values; the second may be wrong.
class TwoSamples final : public DatasetOf<float> {
 public:
  TwoSamples(std::int64_t label, float value) : label_(label), value_(value) {}
  std::int64_t size() const override { return 2; }
  Shape sample_shape() const override { return Shape{3}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override { return index == 0 ? 0 : label_; }
  void read(std::int64_t index, const SampleContext&, std::span<float> sample,
            std::int64_t& label) const override {
    std::ranges::fill(sample, 1.0F);
    if (index == 1) sample[2] = value_;
    label = this->label(index);
  }

 private:
  std::int64_t label_;
  float value_;
  std::vector<std::string> names_{"a", "b"};
};

// Samples of two bytes: the index, and 255.
class TwoBytes final : public DatasetOf<std::uint8_t> {
 public:
  std::int64_t size() const override { return 4; }
  Shape sample_shape() const override { return Shape{2}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override { return index % 2; }
  void read(std::int64_t index, const SampleContext&, std::span<std::uint8_t> sample,
            std::int64_t& label) const override {
    sample[0] = static_cast<std::uint8_t>(index);
    sample[1] = 255;
    label = this->label(index);
  }

 private:
  std::vector<std::string> names_{"a", "b"};
};

std::string error_of_reading(std::int64_t label, float value) {
  Loader loader(std::make_shared<TwoSamples>(label, value), {.batch_size = 2, .shuffle = false});
  return user_error([&] { loader.next(); });
}

}  // namespace

TEST_CASE("a label that no class has is refused when its sample is read") {
  CHECK(error_of_reading(2, 0) ==
        "sample 1 has label 2 and there are 2 classes, so that labels go from 0 to 1; correct the label or "
        "name "
        "its class");
  CHECK(error_of_reading(-1, 0).starts_with("sample 1 has label -1 and there are 2 classes"));
}

TEST_CASE("a value that is not finite is refused when its sample is read") {
  CHECK(error_of_reading(0, std::numeric_limits<float>::quiet_NaN()) ==
        "value 2 of sample 1 is nan; the values of samples are finite, so correct the data");
  CHECK(
      error_of_reading(1, std::numeric_limits<float>::infinity()).starts_with("value 2 of sample 1 is inf"));
}

TEST_CASE("samples of bytes are handed on as bytes, of a subset too") {
  const auto bytes = std::make_shared<TwoBytes>();
  CHECK(to_string(bytes->fields()) == "uint8[2] samples, int64[] labels");
  const auto part = std::make_shared<SubsetDataset>(bytes, std::vector<std::int64_t>{3, 1});
  CHECK(part->fields() == bytes->fields());
  Loader loader(part, {.batch_size = 2, .shuffle = false});
  CHECK(loader.next().micro_batches.front().fields[0] == Tensor::of<std::uint8_t>({2, 2}, {3, 255, 1, 255}));
}

TEST_CASE("samples of bytes are not standardised") {
  const auto bytes = std::make_shared<TwoBytes>();
  CHECK(user_error([&] { measure_standardisation(*bytes); }) ==
        "samples of uint8 were to be standardised, which is for float32; the model normalises images: "
        "normalise_image()");
  CHECK_THROWS_AS(StandardisedDataset(bytes, {{0, 0}, {1, 1}}), UserError);
}

TEST_CASE("sound samples are read") {
  Loader loader(std::make_shared<TwoSamples>(1, 5.0F), {.batch_size = 2, .shuffle = false});
  CHECK(loader.next().micro_batches.front().samples == 2);
}

}  // namespace plexaura::testing::dataset_test
