#include "training/data/tables/standardise.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/subset.h"
#include "training/data/tables/csv.h"

namespace plexaura::testing::standardise_test {

namespace {

// Rows of two features, of which the second is missing in the first row.
std::shared_ptr<const Dataset> rows() {
  const TemporaryFolder folder;
  return std::make_shared<CsvDataset>(folder.write("t.csv", "x,y,kind\n1,,a\n2,10,b\n3,30,a\n"),
                                      CsvOptions{.missing = MissingCells::mean});
}

std::vector<float> sample_of(const Dataset& samples, std::int64_t index) {
  std::vector<float> sample(2);
  std::int64_t label = -1;
  samples.read_sample(index, {}, std::as_writable_bytes(std::span(sample)), label);
  return sample;
}

}  // namespace

TEST_CASE("a missing value is not measured, and becomes the mean") {
  const Standardisation measured = measure_standardisation(*rows());
  CHECK(measured.mean == std::vector<float>{2, 20});
  CHECK(measured.stddev[1] == 10);
  CHECK(sample_of(StandardisedDataset(rows(), measured, true), 0)[1] == 0);
  CHECK(sample_of(StandardisedDataset(rows(), measured, true), 2)[1] == 1);
  CHECK(std::isnan(sample_of(StandardisedDataset(rows(), measured), 0)[1]));
}

TEST_CASE("a column without a value in the training samples has no mean") {
  const SubsetDataset first(rows(), {0});
  CHECK(user_error([&] {
          measure_standardisation(first);
        }).starts_with("value 1 is missing in each training sample, so that it has no mean"));
}

namespace {

// Rows of one number, of which the second cannot be read.
class DamagedRows final : public DatasetOf<float> {
 public:
  std::int64_t size() const override { return 3; }
  Shape sample_shape() const override { return Shape{1}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t /*index*/) const override { return 0; }
  void read(std::int64_t index, const SampleContext& /*context*/, std::span<float> sample,
            std::int64_t& label) const override {
    if (index == 1) throw UserError("row 1 is damaged");
    sample[0] = static_cast<float>(index);
    label = 0;
  }

 private:
  std::vector<std::string> names_{"a"};
};

}  // namespace

TEST_CASE("a row that cannot be read is an error, or left out of the mean") {
  const DamagedRows rows;
  CHECK(user_error([&] { measure_standardisation(rows); }) == "row 1 is damaged");
  const Standardisation scale = measure_standardisation(rows, OnError::skip);
  CHECK(scale.mean == std::vector<float>{1});
  CHECK(scale.stddev == std::vector<float>{1});
}

}  // namespace plexaura::testing::standardise_test
