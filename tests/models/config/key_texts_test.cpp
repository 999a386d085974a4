#include "models/config/key_texts.h"

#include <doctest/doctest.h>
#include <optional>
#include <string>
#include <vector>

namespace plexaura::testing::key_texts_test {

TEST_CASE("a key is described with its rule, its default and what it needs") {
  std::string name;
  double momentum = 0;
  std::optional<std::int64_t> push = 16;
  const std::vector<Key> keys{
      {.name = "name",
       .into = &name,
       .words = {"sgd", "adam", "lars"},
       .required = true,
       .meaning = "a name"},
      {.name = "momentum",
       .into = &momentum,
       .range = {.minimum = 0, .below = 1},
       .needs = {.key = "name", .values = {"sgd", "lars"}},
       .meaning = "see [the page](page.md#part)"},
      {.name = "push", .into = &push, .word = "epoch", .meaning = "steps"},
  };
  const std::vector<KeyText> texts = texts_of("optimizer", keys);
  CHECK(to_text(texts) ==
        "optimizer.name: sgd, adam or lars; required\n"
        "    a name\n"
        "optimizer.momentum: a number >= 0 and < 1; default 0\n"
        "    only with name sgd or lars\n"
        "    see the page\n"
        "optimizer.push: a whole number, or epoch; default 16\n"
        "    steps\n");
  CHECK(to_markdown(texts) ==
        "| key | value | default | meaning |\n"
        "|---|---|---|---|\n"
        "| `optimizer.name` | sgd, adam or lars | required | a name |\n"
        "| `optimizer.momentum` | a number >= 0 and < 1 | `0` | only with name sgd or lars: see [the "
        "page](page.md#part) |\n"
        "| `optimizer.push` | a whole number, or epoch | `16` | steps |\n");
}

TEST_CASE("a long meaning is cut into lines between its words") {
  bool flag = true;
  std::string meaning;
  for (int i = 0; i < 30; ++i) meaning += "seven77 ";
  const std::string text = to_text(texts_of("a", {{.name = "flag", .into = &flag, .meaning = meaning}}));
  CHECK(text.starts_with("a.flag: true or false; default true\n    seven77 "));
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    CHECK(end - begin <= 100);
}

}  // namespace plexaura::testing::key_texts_test
