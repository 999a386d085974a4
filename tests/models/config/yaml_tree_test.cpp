#include "models/config/yaml_tree.h"

#include <doctest/doctest.h>

#include "tests/models/config/iris_yaml.h"

namespace plexaura::testing::yaml_tree_test {

TEST_CASE("what is not a configuration") {
  CHECK(parse_error("") == "iris.yaml: the configuration is empty; it must be a map of sections");
  CHECK(parse_error("# a comment\n") ==
        "iris.yaml: the configuration is empty; it must be a map of sections");
  CHECK(parse_error("- 1\n") ==
        "iris.yaml:1:1: the configuration must be a map of sections such as 'training:'");
  CHECK(parse_error("words\n") ==
        "iris.yaml:1:1: the configuration must be a map of sections such as 'training:'");
  CHECK(parse_error("a: [1\nb: 2\n").starts_with("iris.yaml:2:2: this is not valid YAML: "));
  const std::string unclosed = "iris.yaml:1:4: a text in quotes has no closing quote";
  for (const std::string text : {"a: \"x\n", "a: 'x\n", "a: 'x''\n", "a: \"x\\\"\nb: 1\n", "a: '\nb: 1\n"})
    CHECK(parse_error(text) == unclosed);
  CHECK(parse_error("a: \"x") == "iris.yaml:1:6: this is not valid YAML: illegal EOF in scalar");
  CHECK(parse_error("a:\n\tb: 1\n") ==
        "iris.yaml:2:1: a tab in the indentation; YAML allows only spaces there");
  CHECK(parse_error(std::string("a: \x04\n")) ==
        "iris.yaml:1:4: the control character 0x04, but a configuration is plain text; remove it");
  CHECK(parse_error(std::string("a: 1\0b", 6)) ==
        "iris.yaml:1:5: the control character 0x00, but a configuration is plain text; remove it");
  CHECK(parse_error(R"(a: "x\0y")") ==
        "iris.yaml:1:4: the text contains the character 0, which no name and no path can contain; remove it");
  CHECK(parse_error("\"a\\e[31m\": 1\n\"a\\e[31m\": 2\n") ==
        "iris.yaml:2:1: the key 'a\\x1b[31m' is given twice, first at 1:1; remove one of them");
  CHECK(parse_error("a: 1\nb: 2\na: 3\n") ==
        "iris.yaml:3:1: the key 'a' is given twice, first at 1:1; remove one of them");
  CHECK(parse_error("s:\n  a: 1\n  a: 1\n") ==
        "iris.yaml:3:3: the key 'a' is given twice, first at 2:3; remove one of them");
  CHECK(parse_error("a: 1\n---\nb: 2\n") ==
        "iris.yaml:3:1: a second document; a configuration is one document");
  CHECK(parse_error("[a]: 1\n") == "iris.yaml:1:1: a key must be a word");
  CHECK(parse_error("a: !!int 1\n") ==
        "iris.yaml:1:4: the tag 'tag:yaml.org,2002:int' is not supported; leave it out");
}

TEST_CASE("a colon without a blank behind it is told so") {
  CHECK(parse_error("a: {name:sgd, rate: 1}") ==
        "iris.yaml:1:5: 'name:sgd' has no space after the colon; write 'name: sgd'");
  CHECK(parse_error("a: 1\n", {"a={name:sgd,rate:0.1}"})
            .ends_with("'name:sgd' has no space after the colon; write 'name: sgd'"));
  CHECK(parsed("a: {\"b:c\": 1, d: }").section("a").integer("b:c") == 1);
}

TEST_CASE("quotes, blocks, comments, line ends and a byte order mark are read as YAML has them") {
  const auto text = [](const std::string& yaml) { return parsed(yaml).root().text("a"); };
  CHECK(text("a: 'it''s'\n") == "it's");
  CHECK(text("a: \"say \\\"x\\\"\"  # \"\n") == "say \"x\"");
  CHECK(text("a: ''\n").empty());
  CHECK(text("a: |\n  one\n  two's\n") == "one\ntwo's\n");
  CHECK(text("a: b  # c\r\nd: 1\r\n") == "b");
  CHECK(text("\xef\xbb\xbf# ü\na: \"x\"\n") == "x");
}

TEST_CASE("anchors and aliases are refused, wherever they stand") {
  const std::string end = ": anchors and aliases (& and *) are not supported; write the value out";
  CHECK(parse_error("a: &x 1\nb: *x\n") == "iris.yaml:1:4" + end);
  CHECK(parse_error("a: &x\n  b: 1\n") == "iris.yaml:1:4" + end);
  CHECK(parse_error("a: &x [1]\n") == "iris.yaml:1:4" + end);
  CHECK(parse_error("&x a: 1\n").ends_with(end));
  CHECK(!parse_error("a: *x\n").empty());
}

TEST_CASE("depth and size are bounded") {
  CHECK(parse_error("a: " + std::string(100, '[') + std::string(100, ']')) ==
        "iris.yaml:1:67: values are nested more than 64 deep");
  CHECK(!parse_error("a: " + std::string(500000, '[')).empty());
  CHECK(!parse_error("a: " + std::string(500000, '{')).empty());
  std::string dashes;
  for (int i = 0; i < 1000; ++i) dashes += "- ";
  CHECK(!parse_error(dashes).empty());
  CHECK(parse_error(std::string(2000000, '#')) ==
        "iris.yaml: the configuration has 2000000 bytes; at most 1048576 are read");
}

}  // namespace plexaura::testing::yaml_tree_test
