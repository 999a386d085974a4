#include "training/data/tables/categories.h"

#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "tests/training/data/tables/csv_text.h"

namespace plexaura::testing::categories_test {

namespace {

const std::string table = "id,colour,x,kind\nn1,red,1,a\nn2,\"dark blue\",2,b\nn3,red,3,a\nn4,10,4,b\n";

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("each word of a column is a feature, and ignored columns are not read") {
  const CsvDataset rows = dataset_of(table, {.ignored = {"id"}, .categories = {{"colour"}}});
  CHECK(rows.feature_names() == Names{"colour=10", "colour=dark blue", "colour=red", "x"});
  CHECK(rows.values() == std::vector<float>{0, 0, 1, 1, 0, 1, 0, 2, 0, 0, 1, 3, 1, 0, 0, 4});
  // Words that are numbers are sorted as numbers.
  const CsvDataset zones = dataset_of("zone,y\n10,1\n9,2\n", {.targets = {"y"}, .categories = {{"zone"}}});
  CHECK(zones.feature_names() == Names{"zone=9", "zone=10"});
  CHECK(zones.values() == std::vector<float>{0, 1, 1, 1, 0, 2});
}

TEST_CASE("permitted words are numbered in their order, and others are errors with their place") {
  const CsvOptions trained{.labelled = false,
                           .features = {"x", "colour"},
                           .categories = {{.name = "colour", .words = {"red", "green", "dark blue"}}}};
  const CsvDataset rows = dataset_of("colour,x\ndark blue,5\nred,6\n", trained);
  CHECK(rows.values() == std::vector<float>{5, 0, 0, 1, 6, 1, 0, 0});
  CHECK(
      error_in("colour,x\nred,5\nviolet,6\n", trained)
          .ends_with(":3:1: 'violet' in colour is none of the words of the training: red, green, dark blue; "
                     "correct the cell, or train on a table with this word"));
}

TEST_CASE("a missing word is an error, leaves out its row, or is 0 for all words") {
  const std::string text = "colour,y\nred,1\n,2\nblue,3\n";
  const auto options = [](MissingCells missing) {
    return CsvOptions{.targets = {"y"}, .categories = {{"colour"}}, .missing = missing};
  };
  CHECK(contains(error_in(text, options(MissingCells::error)), ":3:1: '' in colour means a missing word"));
  CHECK(dataset_of(text, options(MissingCells::drop)).values() == std::vector<float>{0, 1, 1, 1, 0, 3});
  CHECK(dataset_of(text, options(MissingCells::mean)).values() ==
        std::vector<float>{0, 1, 1, 0, 0, 2, 1, 0, 3});
}

TEST_CASE("columns that cannot be words or be ignored are refused in a sentence") {
  CHECK(contains(error_in(table, {.ignored = {"id"}}),
                 ":2:4: 'red' in colour is not a finite number; features are numbers, so correct the cell or "
                 "leave the column out, or name it in data.categories if its cells are words"));
  CHECK(contains(error_in(table, {.categories = {{"kind"}}}),
                 "the column of words kind is the label, a target"));
  CHECK(contains(error_in(table, {.categories = {{"color"}}}), "no column is called 'color'"));
  CHECK(contains(error_in(table, {.ignored = {"kind"}}), "kind is ignored, and it is the label"));
  CHECK(contains(error_in(table, {.ignored = {"id", "colour", "x"}}), "no column is left to be a feature"));
  CHECK(contains(error_in("c,c=1,y\na,1,2\nb,2,3\n", {.targets = {"y"}, .categories = {{"c"}}}),
                 "the column c=1 is called as the words of c are; rename one of them"));
  std::string many = "name,y\n";
  for (int i = 0; i <= 1000; ++i) many += fmt::format("word{},{}\n", i, i);
  CHECK(contains(error_in(many, {.targets = {"y"}, .categories = {{"name"}}}),
                 ":1002:1: 'word1000' is one of more than 1000 different words in name"));
}

TEST_CASE("the columns and their words follow from the names of features") {
  const Names features{"x", "c=1", "c=2=3", "cc", "d=e"};
  const Names categories{"c"};
  CHECK(table_columns(features, categories) == Names{"x", "c", "cc", "d=e"});
  CHECK(words_of_features(features, categories) == std::vector<CategoryColumn>{{"c", {"1", "2=3"}}});
  CHECK(category_of("c=1", categories) == categories.data());
  CHECK(category_of("cc", categories) == nullptr);
}

}  // namespace plexaura::testing::categories_test
