#include "training/data/tables/target_samples.h"

#include <array>
#include <doctest/doctest.h>
#include <vector>

#include "tests/training/data/data_support.h"
#include "training/data/tables/csv.h"

namespace plexaura::testing::target_samples_test {

TEST_CASE("the last numbers of a row are its targets") {
  const TemporaryFolder folder;
  const auto rows = std::make_shared<CsvDataset>(folder.write("t.csv", "a,b,t\n1,2,3\n4,5,6\n"),
                                                 CsvOptions{.targets = {"t"}});
  const TargetSamples samples(rows, 1);
  CHECK(samples.size() == 2);
  CHECK(samples.in_memory());
  CHECK(samples.fields() ==
        std::vector<Field>{{"samples", {DType::float32, {2}}}, {"targets", {DType::float32, {1}}}});
  std::vector<float> features(2);
  std::vector<float> targets(1);
  samples.read_fields(
      1, {},
      std::array{std::as_writable_bytes(std::span(features)), std::as_writable_bytes(std::span(targets))});
  CHECK(features == std::vector<float>{4, 5});
  CHECK(targets == std::vector<float>{6});
  for (const std::int64_t count : {0, 3})
    CHECK(
        user_error([&] { const TargetSamples none(rows, count); })
            .ends_with(
                "targets cannot be separated from rows of float32[3]; give rows of float32 with the targets "
                "after the features"));
}

}  // namespace plexaura::testing::target_samples_test
