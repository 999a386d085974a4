#include "training/checkpoints/kept_choices.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"

namespace plexaura::testing::kept_choices_test {

namespace fs = std::filesystem;

TEST_CASE("choices that were kept are found by their keys, the last one of each") {
  const TemporaryFolder folder;
  const fs::path file = folder / "made/when/needed";
  CHECK(kept_choice(file, 1).empty());
  CHECK(keep_choice(file, 1, "one way").empty());
  CHECK(keep_choice(file, 0xfedcba9876543210U, "another").empty());
  CHECK(keep_choice(file, 1, "a better way").empty());
  CHECK(kept_choice(file, 1) == "a better way");
  CHECK(kept_choice(file, 0xfedcba9876543210U) == "another");
  CHECK(kept_choice(file, 2).empty());
}

TEST_CASE("of choices the oldest go") {
  const TemporaryFolder folder;
  const fs::path file = folder / "choices";
  std::string text = "plexaura choices 1\n";
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + " way\n";
  write_text(file, text);
  CHECK(keep_choice(file, 0xabc, "new").empty());
  CHECK(kept_choice(file, 0).empty());
  CHECK(kept_choice(file, 1) == "way");
  CHECK(kept_choice(file, 0xabc) == "new");
}

TEST_CASE("a damaged file of choices holds nothing, and is written anew") {
  const TemporaryFolder folder;
  const fs::path file = folder / "choices";
  for (const char* text :
       {"", "nonsense", "plexaura choices 2\n1 way\n", "plexaura choices 1\n1\nx way\n1 "}) {
    write_text(file, text);
    CHECK(kept_choice(file, 1).empty());
    CHECK(keep_choice(file, 1, "way").empty());
    CHECK(kept_choice(file, 1) == "way");
  }
}

TEST_CASE("that a choice cannot be kept is no error") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "choices");
  CHECK(kept_choice(folder / "choices", 1).empty());
  CHECK(keep_choice(folder / "choices", 1, "way").starts_with("it is not kept: "));
  CHECK(keep_choice({}, 1, "way").starts_with("it is not kept, because "));
}

}  // namespace plexaura::testing::kept_choices_test
