#include "app/data/label_column.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "app/data/open_data.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::label_column_test {

namespace {

// Returns a table with two columns, of which `cell` fills the second.
template <class F>
std::string table(const std::string& header, int rows, F&& cell) {
  std::string text = header + "\n";
  for (int i = 0; i < rows; ++i) text += fmt::format("{},{}\n", i, cell(i));
  return text;
}

std::int64_t open(const std::string& table, const std::string& keys = "") {
  const TemporaryFolder folder;
  write_text(folder / "t.csv", table);
  return open_data(Config::parse(
                       fmt::format("data: {{format: csv, path: {}{}}}\n", (folder / "t.csv").string(), keys),
                       "test.yaml"))
      .train->size();
}

std::string refusal(const std::string& table, const std::string& keys = "") {
  return user_error([&] { open(table, keys); });
}

}  // namespace

TEST_CASE("numbers that are nearly all different are no classes") {
  const auto says = [](const std::string& column) {
    return fmt::format(
        " rows: for regression set model.task to regression and data.targets to ['{}']; for classification "
        "name "
        "the column of the classes, or, if these are classes, write them as words",
        column);
  };
  const auto prices = table("x,price", 60, [](int i) { return fmt::format("{:.2f}", 1.37 * i); });
  CHECK(refusal(prices) ==
        "test.yaml:1:1: data.label is the column 'price', which has 60 different numbers in 60" +
            says("price"));
  CHECK(refusal(prices, ", validation_share: 0").ends_with(says("price")));
  CHECK(refusal(table("x,year", 40, [](int i) {
          return fmt::format("{}", 1980 + i);
        })).ends_with(says("year")));
  const auto some = table("x,price", 200, [](int i) { return fmt::format("{:.1f}", 0.3 * (i % 50)); });
  CHECK(refusal(some, ", validation_share: 0").find("50 different numbers in 200 rows") != std::string::npos);
}

TEST_CASE("numbers that may be classes are classes") {
  CHECK(open(table("x,digit", 40, [](int i) { return std::to_string(i % 10); })) == 32);
  CHECK(open(table("x,stars", 200, [](int i) { return fmt::format("{:.1f}", 0.5 * (i % 10)); })) == 160);
  CHECK(open("x,k\n1,0.5\n2,1.5\n", ", validation_share: 0") == 2);
  CHECK(open(table("x,city", 200, [](int i) { return std::to_string(i % 50); })) == 160);
}

TEST_CASE("words that are nearly all different are asked for where a class has too few samples") {
  const auto names = table("x,name", 20, [](int i) { return fmt::format("id{}", i); });
  CHECK(refusal(names).ends_with(
      "; there are 20 classes: if these are not meant, name the column of the classes in data.label"));
  CHECK(open(names, ", validation_share: 0") == 20);
}

TEST_CASE("the last column is not the label where another is called so") {
  const std::string text = "Class,x,z\na,1,0\nb,2,1\na,3,2\nb,4,0\n";
  CHECK(
      refusal(text).ends_with("t.csv:1:1: a column is called 'Class', and the last one, 'z', would be the "
                              "label; name the one that holds the "
                              "classes in data.label"));
  CHECK(open(text, ", label: Class, validation_share: 0") == 4);
  CHECK(open("target,x,label\n1,1,a\n2,2,b\n", ", validation_share: 0") == 2);
}

}  // namespace plexaura::testing::label_column_test
