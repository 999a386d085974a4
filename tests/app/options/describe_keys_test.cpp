#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

#include "app/options/run_keys.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/files/file.h"

namespace plexaura::testing::describe_keys_test {

namespace {

namespace fs = std::filesystem;

const std::string operations = "data.augmentation[]";  // they have a page of their own

// Returns the text of a page with tables of keys inserted between its comments "keys of SECTION" and "end of keys".
std::string with_key_tables(std::string text, const std::vector<std::string>& sections) {
  for (const std::string& section : sections) {
    std::vector<KeyText> keys = all_key_texts();
    std::erase_if(keys, [&](const KeyText& key) {
      return !key.path.starts_with(section + '.') ||
             key.path.starts_with(operations) != (section == operations);
    });
    const std::string begin = fmt::format("<!-- keys of {} -->\n", section);
    const std::size_t first = text.find(begin);
    REQUIRE(first != std::string::npos);
    const std::size_t last = text.find("<!-- end of keys -->", first);
    REQUIRE(last != std::string::npos);
    text.replace(first + begin.size(), last - first - begin.size(), to_markdown(keys));
  }
  return text;
}

}  // namespace

TEST_CASE("docs/reference/ has the tables of the keys") {
  const std::map<std::string, std::vector<std::string>> pages{
      {"configuration.md", {"data", "training", "distributed", "output"}}, {"augmentation.md", {operations}}};
  for (const auto& [page, sections] : pages) {
    const fs::path written = fs::path(PLEXAURA_SOURCE) / "docs/reference" / page;
    const std::string text = read_text(written);
    const std::string wanted = with_key_tables(text, sections);
    if (text == wanted) continue;
    const fs::path made = fs::current_path() / page;
    write_text(made, wanted);
    FAIL_CHECK("the keys have changed: cp " << made.string() << " " << written.string());
  }
}

TEST_CASE("--describe prints a key or a section, and names the nearest for one that there is not") {
  CHECK(
      describe_keys("output.keep").starts_with("output.keep: a whole number >= 1; default 1\n    number of"));
  CHECK(describe_keys("training.schedule").starts_with("training.schedule.name: constant, step, "));
  CHECK(describe_keys("training.schedule").find("training.seed") == std::string::npos);
  CHECK(describe_keys("model.layers").find("model.layers[].kernel: ") != std::string::npos);
  CHECK(describe_keys("").find("\ndistributed.strategy: allreduce, ") != std::string::npos);
  CHECK(user_error([] { describe_keys("output.keeps"); }) ==
        "--describe: 'output.keeps' is not a key or section of model, data, training, distributed and "
        "output; did "
        "you mean 'output.keep'?");
}

}  // namespace plexaura::testing::describe_keys_test
