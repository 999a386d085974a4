#include <cmath>
#include <doctest/doctest.h>

#include "tests/training/data/tables/csv_text.h"

namespace plexaura::testing::csv_missing_test {

namespace {

const std::string table = "x,y,kind\n1,NA,a\n2,20,b\n,30,a\n4,40,\n5,50,a\n6,60,?\n";

}  // namespace

TEST_CASE("rows that lack a cell are left out if the caller says so") {
  const CsvDataset dropped = dataset_of(table, {.missing = MissingCells::drop});
  CHECK(dropped.values() == std::vector<float>{2, 20, 5, 50});
  CHECK(labels_of(dropped) == std::vector<std::int64_t>{1, 0});
  CHECK(dropped.dropped() == 4);
  CHECK(contains(error_in("x,kind\n,a\nNA,b\n", {.missing = MissingCells::drop}),
                 "each of the 2 rows lacks a cell, and data.missing is drop"));
}

TEST_CASE("missing features become a number or NaN, and missing labels stay errors") {
  const std::string features = "x,y,kind\n1,nan,a\n?,20,b\n";
  const CsvDataset filled = dataset_of(features, {.missing = MissingCells::value, .missing_value = -1});
  CHECK(filled.values() == std::vector<float>{1, -1, -1, 20});
  const CsvDataset kept = dataset_of(features, {.missing = MissingCells::mean});
  CHECK(std::isnan(kept.values()[1]));
  CHECK(kept.values()[3] == 20);
  for (const MissingCells missing : {MissingCells::error, MissingCells::mean, MissingCells::value})
    CHECK(
        contains(error_in("x,kind\n1,a\n2,\n", {.missing = missing}), ":3:3: the label in kind is missing"));
  CHECK(contains(error_in(features, {}), ":2:3: 'nan' in y is not a finite number"));
  CHECK(contains(error_in("x,y,kind\n1,,a\n2,,b\n", {.missing = MissingCells::mean}),
                 "no row has a number in y"));
  // A missing target cannot be replaced, and other text is not a missing cell.
  CHECK(contains(error_in("x,y\n1,NA\n2,3\n", {.targets = {"y"}, .missing = MissingCells::value}),
                 ":2:3: 'NA' in y is not a finite number"));
  CHECK(contains(error_in("x,kind\nlarge,a\n", {.missing = MissingCells::drop}),
                 "'large' in x is not a finite"));
}

}  // namespace plexaura::testing::csv_missing_test
