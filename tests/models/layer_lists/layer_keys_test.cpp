#include "models/layer_lists/layer_keys.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>

#include "models/config/key_texts.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::layer_keys_test {

namespace {

// Returns the text with `table` between the comments "<!-- NAME -->" and "<!-- end of NAME -->".
std::string with_table(std::string text, const std::string& name, const std::string& table) {
  const std::string begin = fmt::format("<!-- {} -->\n", name);
  const std::size_t first = text.find(begin);
  const std::size_t last = text.find(fmt::format("<!-- end of {} -->", name));
  REQUIRE(first != std::string::npos);
  REQUIRE(last != std::string::npos);
  const std::size_t start = first + begin.size();
  return text.replace(start, last - start, table);
}

}  // namespace

TEST_CASE("docs/reference/models.md has the tables of layers and their keys") {
  const std::filesystem::path written = std::filesystem::path(PLEXAURA_SOURCE) / "docs/reference/models.md";
  LayerKeys keys;
  const std::string text = read_text(written);
  const std::string wanted =
      with_table(with_table(text, "types of layers", layer_types_markdown()), "keys of layers",
                 to_markdown(texts_of("layers[]", layer_keys(keys))));
  if (text == wanted) return;
  const std::filesystem::path made = std::filesystem::current_path() / "models.md";
  write_text(made, wanted);
  FAIL("the layers have changed: cp " << made.string() << " " << written.string());
}

}  // namespace plexaura::testing::layer_keys_test
