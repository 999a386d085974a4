#include "app/data/describe_data.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "training/data/tables/csv.h"

namespace plexaura::testing::describe_data_test {

namespace {

// Describes a table that has the given number of rows of each class.
std::string classes_of(const std::vector<std::pair<std::string, int>>& counts) {
  const TemporaryFolder folder;
  std::string text = "x,k\n";
  for (const auto& [name, count] : counts)
    for (int i = 0; i < count; ++i) text += "1," + name + "\n";
  write_text(folder / "t.csv", text);
  return classes_text(CsvDataset(folder / "t.csv"));
}

}  // namespace

TEST_CASE("classes are told with their counts, so that a mistyped one is seen") {
  CHECK(classes_of({{"yes", 3}, {"Yes", 1}, {"no", 2}}) == "'Yes' (1), 'no' (2), 'yes' (3)");
  CHECK(classes_of({{"01", 1}, {"1", 2}}) == "'01' (1), '1' (2)");
}

TEST_CASE("of many classes the first ones are told, and the range of the others") {
  std::vector<std::pair<std::string, int>> counts;
  for (int i = 10; i < 22; ++i) counts.emplace_back(std::to_string(i), 1);
  CHECK(classes_of(counts).ends_with("'21' (1)"));
  counts.emplace_back("30", 2);
  CHECK(classes_of(counts).ends_with("'21' (1) and 1 more (2 each)"));
  counts.emplace_back("31", 5);
  CHECK(classes_of(counts).ends_with("'21' (1) and 2 more (2 to 5 each)"));
  CHECK(classes_of({{std::string(500, 'a'), 1}, {"b", 1}}).size() < 100);
}

TEST_CASE("what was passed over is told by kind") {
  CHECK(ignored_text({}).empty());
  CHECK(ignored_text({.others = 1}) == " (ignored: 1 file that is not an image)");
  CHECK(ignored_text({.others = 2, .beside_classes = 1}) ==
        " (ignored: 2 files that are not images, 1 image in no folder of a class)");
  CHECK(ignored_text({.pictures = {{"BMP", 1}, {"WebP", 5}}, .others = 1}) ==
        " (ignored: 1 in BMP, 5 in WebP, 1 file that is not an image; only JPEG and PNG are read)");
}

}  // namespace plexaura::testing::describe_data_test
