#include "models/config/config.h"

#include <doctest/doctest.h>
#include <string>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

using namespace plexaura;
using namespace plexaura::testing;

namespace {

const std::string iris =
    "model:\n"
    "  layers:\n"
    "    - type: linear\n"
    "      units: 30\n"
    "    - type: linear\n"
    "      units: 20\n"
    "training:\n"
    "  batch_size: 4\n"
    "  learning_rate: 1e-2\n"
    "  optimizer: sgd\n"
    "  shuffle: true\n"
    "  steps: [10, 20]\n"
    "output:\n"
    "  dir: \"runs/iris\"\n";

Config parsed(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return Config::parse(text, "iris.yaml", overrides);
}

std::string parse_error(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return user_error([&] { parsed(text, overrides); });
}

// The error of reading from `training` of such a text.
template <class F>
std::string training_error(const std::string& text, F&& read) {
  const Config config = parsed(text);
  return user_error([&] { read(config.section("training")); });
}

void read_all(const Config& config) {
  for (const Section& layer : config.section("model").sections("layers")) {
    layer.choice("type", {"linear", "relu"});
    layer.integer_or("units", 1);
    layer.flag_or("bias", true);
  }
  const Section training = config.section("training");
  training.integer("batch_size");
  training.number("learning_rate");
  training.choice("optimizer", {"sgd", "adam"});
  training.flag("shuffle");
  training.integers("steps");
  training.number_or("momentum", 0.9);
  config.section("output").text("dir");
}

}  // namespace

TEST_CASE("values are read by the function of their type") {
  const Config config = parsed(iris);
  const Section training = config.section("training");
  CHECK(training.integer("batch_size", {.minimum = 1}) == 4);
  CHECK(training.number("learning_rate", {.above = 0}) == 0.01);
  CHECK(training.number("batch_size") == 4);
  CHECK(training.choice("optimizer", {"sgd", "adam"}) == "sgd");
  CHECK(training.text("optimizer") == "sgd");
  CHECK(training.flag("shuffle"));
  CHECK(training.integers("steps") == std::vector<std::int64_t>{10, 20});
  CHECK(training.numbers("steps") == std::vector<double>{10, 20});
  CHECK(config.section("output").text("dir") == "runs/iris");
  const std::vector<Section> layers = config.section("model").sections("layers");
  REQUIRE(layers.size() == 2);
  CHECK(layers[1].integer("units") == 20);
}

TEST_CASE("defaults stand where a key is missing, and only there") {
  const Config config = parsed("training:\n  a: 1\n");
  const Section training = config.section("training");
  CHECK(training.integer_or("a", 7) == 1);
  CHECK(training.integer_or("b", 7) == 7);
  CHECK(training.number_or("b", 0.5) == 0.5);
  CHECK(training.text_or("b", "x") == "x");
  CHECK(training.flag_or("b", true));
  CHECK(training.choice_or("b", "x", {"x", "y"}) == "x");
  CHECK(training.integers_or("b", {1, 2}) == std::vector<std::int64_t>{1, 2});
  CHECK(training.numbers_or("b", {0.5}) == std::vector<double>{0.5});
  CHECK(config.section("output").text_or("dir", "runs") == "runs");
  CHECK(training.has("a"));
  CHECK(!training.has("b"));
}

TEST_CASE("numbers in all their spellings, and no others") {
  const auto integer = [](const std::string& text) { return parsed("a: " + text).root().integer("a"); };
  const auto number = [](const std::string& text) { return parsed("a: " + text).root().number("a"); };
  CHECK(integer("-3") == -3);
  CHECK(integer("+3") == 3);
  CHECK(integer("9223372036854775807") == INT64_MAX);
  for (const std::string text :
       {"1.0", "1e3", "0x10", "9223372036854775808", "1 2", "+-1", "yes", "~", "", "[1]"})
    CHECK_THROWS_AS(integer(text), UserError);
  CHECK(number("5e-4") == 5e-4);
  CHECK(number(".5") == 0.5);
  CHECK(number("-2") == -2);
  for (const std::string text : {"1e999", "nan", ".nan", "inf", ".inf", "1,5", "0.1f", "one", "~", ""})
    CHECK_THROWS_AS(number(text), UserError);
}

TEST_CASE("a wrong value is named with its place and the rule") {
  const std::string text = "training:\n  batch_size: many\n";
  CHECK(training_error(text, [](const Section& s) { s.integer("batch_size", {.minimum = 1}); }) ==
        "iris.yaml:2:15: training.batch_size is 'many'; it must be a whole number >= 1");
  CHECK(training_error(text, [](const Section& s) { s.integer("batch_size"); }) ==
        "iris.yaml:2:15: training.batch_size is 'many'; it must be a whole number");
  CHECK(training_error(text, [](const Section& s) {
          s.integer_or("batch_size", 1, {.minimum = 1, .maximum = 8});
        }) == "iris.yaml:2:15: training.batch_size is 'many'; it must be a whole number >= 1 and <= 8");
  CHECK(training_error(text, [](const Section& s) { s.number("batch_size", {.maximum = 1, .above = 0}); }) ==
        "iris.yaml:2:15: training.batch_size is 'many'; it must be a number > 0 and <= 1");
  CHECK(training_error(text, [](const Section& s) { s.flag("batch_size"); }) ==
        "iris.yaml:2:15: training.batch_size is 'many'; it must be true or false");
  CHECK(training_error(text,
                       [](const Section& s) {
                         s.choice("batch_size", {"one", "mayn"});
                       }) ==
        "iris.yaml:2:15: training.batch_size is 'many'; it must be one of one, mayn (did you mean 'mayn'?)");
  CHECK(training_error(text, [](const Section& s) { s.integers("batch_size", {.minimum = 0}); }) ==
        "iris.yaml:2:15: training.batch_size is 'many'; it must be a list of whole numbers >= 0");
  CHECK(training_error(text, [](const Section& s) { s.section("batch_size"); }) ==
        "iris.yaml:2:15: training.batch_size is 'many'; it must be a section of keys");
  CHECK(training_error(text, [](const Section& s) { s.sections("batch_size"); }) ==
        "iris.yaml:2:15: training.batch_size is 'many'; it must be a list of sections");
}

TEST_CASE("a value outside its range") {
  const std::string text = "training:\n  rate: 0\n";
  CHECK(training_error(text, [](const Section& s) { s.integer("rate", {.minimum = 1}); }) ==
        "iris.yaml:2:9: training.rate is '0'; it must be a whole number >= 1");
  CHECK(training_error(text, [](const Section& s) { s.number("rate", {.above = 0}); }) ==
        "iris.yaml:2:9: training.rate is '0'; it must be a number > 0");
  CHECK(training_error(text, [](const Section& s) { s.number("rate", {.minimum = -1, .below = 0}); }) ==
        "iris.yaml:2:9: training.rate is '0'; it must be a number >= -1 and < 0");
}

TEST_CASE("what is no scalar is said to be what it is") {
  const auto text_error = [](const std::string& value) {
    return training_error("training:\n  dir: " + value + "\n", [](const Section& s) { s.text("dir"); });
  };
  CHECK(text_error("[1]") == "iris.yaml:2:8: training.dir is a list; it must be a text");
  CHECK(text_error("{a: 1}") == "iris.yaml:2:8: training.dir is a section of keys; it must be a text");
  CHECK(text_error("~") == "iris.yaml:2:8: training.dir is empty; it must be a text");
}

TEST_CASE("an element of a list is named by its index") {
  CHECK(training_error("training:\n  steps: [1, two]\n", [](const Section& s) { s.integers("steps"); }) ==
        "iris.yaml:2:14: training.steps[1] is 'two'; it must be a whole number");
  CHECK(training_error("training:\n  layers:\n    - a: 1\n    - 2\n", [](const Section& s) {
          s.sections("layers");
        }) == "iris.yaml:4:7: training.layers[1] is '2'; it must be a section of keys");
  const auto units = [](const Section& s) {
    for (const Section& layer : s.sections("layers")) layer.integer("units");
  };
  CHECK(training_error("training:\n  layers: [{units: 1}, {units: x}]\n", units) ==
        "iris.yaml:2:32: training.layers[1].units is 'x'; it must be a whole number");
}

TEST_CASE("a missing key, also in a section that is not there") {
  const auto read = [](const Section& s) { s.integer("batch_size", {.minimum = 1}); };
  const std::string end = "it must be a whole number >= 1";
  CHECK(training_error("a: 1\ntraining:\n  epochs: 1\n", read) ==
        "iris.yaml:2:1: training.batch_size is missing; " + end);
  CHECK(training_error("a: 1\n", read) == "iris.yaml:1:1: training.batch_size is missing; " + end);
  CHECK(training_error("training:\n", read) == "iris.yaml:1:1: training.batch_size is missing; " + end);
  CHECK(training_error("training:\n  bacth_size: 1\n", read) ==
        "iris.yaml:1:1: training.batch_size is missing; is 'bacth_size' at iris.yaml:2:3 meant for it? " +
            end);
}

TEST_CASE("a key that nobody read is an error with the nearest known one") {
  const auto unused = [](const std::string& text, const std::vector<std::string>& overrides = {}) {
    const Config config = parsed(text, overrides);
    read_all(config);
    return user_error([&] { config.check_all_used(); });
  };
  const std::string known = " (known keys: batch_size, learning_rate, momentum, optimizer, shuffle, steps)";
  CHECK(unused(iris).empty());
  CHECK(unused(iris, {"training.momentun=1"}) ==
        "--set training.momentun=1: unknown key 'momentun' in training; did you mean 'momentum'?" + known);
  CHECK(unused(iris, {"training.warp=1"}) == "--set training.warp=1: unknown key 'warp' in training" + known);
  CHECK(unused("trainin:\n  a: 1\n" + iris) ==
        "iris.yaml:1:1: unknown key 'trainin' at the top; did you mean 'training'? (known keys: model, "
        "output, training)");
  CHECK(unused(iris, {"model.layers.1.bais=true"}) ==
        "--set model.layers.1.bais=true: unknown key 'bais' in model.layers[1]; did you mean 'bias'? (known "
        "keys: bias, "
        "type, units)");
  CHECK(unused(iris, {"model.depth=1"}) ==
        "--set model.depth=1: unknown key 'depth' in model (known keys: layers)");
}

TEST_CASE("a key that was looked for and not read has no effect") {
  const Config config = parsed("a: 1\n");
  CHECK(config.root().has("a"));
  CHECK(user_error([&] { config.check_all_used(); }) ==
        "iris.yaml:1:1: the key 'a' at the top has no effect here; remove it");
}

TEST_CASE("a section in which nothing is known") {
  const Config config = parsed("data:\n  path: x\n");
  const Section data = config.section("data");
  CHECK(user_error([&] { config.check_all_used(); }) ==
        "iris.yaml:2:3: unknown key 'path' in data (known keys: none)");
}

TEST_CASE("a section alone may be looked through for keys that nobody read") {
  const Config config = parsed("data:\n  path: x\nmodel:\n  depth: 1\n  width: 2\n");
  const Section model = config.section("model");
  model.integer("depth");
  CHECK(user_error([&] { model.check_all_used(); }) ==
        "iris.yaml:5:3: unknown key 'width' in model (known keys: depth)");
  model.integer("width");
  CHECK_NOTHROW(model.check_all_used());
}

TEST_CASE("copies of a section are one section") {
  const Config config = parsed("data:\n  a: 1\n  b: 2\n");
  config.section("data").integer("a");
  config.section("data").integer("b");
  CHECK_NOTHROW(config.check_all_used());
}

TEST_CASE("a section outlives its configuration") {
  const Section section = parsed("data:\n  a: 1\n").section("data");
  CHECK(section.integer("a") == 1);
}

TEST_CASE("positions and paths for those who build from a section") {
  const Config config = parsed(iris, {"training.batch_size=8"});
  const Section training = config.section("training");
  CHECK(training.position("learning_rate") == YamlPosition{"iris.yaml", 9, 18});
  CHECK(training.position() == YamlPosition{"iris.yaml", 7, 1});
  CHECK(to_string(training.position("batch_size")) == "--set training.batch_size=8");
  CHECK(training.position("missing") == training.position());
  const Section layer = config.section("model").sections("layers")[1];
  CHECK(layer.path() == "model.layers[1]");
  CHECK(to_string(layer.position()) == "iris.yaml:5:7");
  CHECK(std::string(layer.error("units", "does not fit the labels").what()) ==
        "iris.yaml:6:14: model.layers[1].units does not fit the labels");
}

TEST_CASE("overrides") {
  SUBCASE("replace, add and make sections; the last one wins") {
    const Config config =
        parsed(iris, {"training.batch_size=8", "training.batch_size=16", "training.epochs=3",
                      "distributed.strategy=allreduce", "training.steps=[1, 2, 3]", "model.layers.0.units=31",
                      "output.dir=a=b"});
    CHECK(config.section("training").integer("batch_size") == 16);
    CHECK(config.section("training").integer("epochs") == 3);
    CHECK(config.section("distributed").text("strategy") == "allreduce");
    CHECK(config.section("training").integers("steps") == std::vector<std::int64_t>{1, 2, 3});
    CHECK(config.section("model").sections("layers")[0].integer("units") == 31);
    CHECK(config.section("output").text("dir") == "a=b");
  }
  SUBCASE("are named where their value is wrong") {
    const Config config = parsed(iris, {"training.steps=[1, x]"});
    CHECK(user_error([&] { config.section("training").integers("steps"); }) ==
          "--set training.steps=[1, x]: training.steps[1] is 'x'; it must be a whole number");
  }
  SUBCASE("replace a whole section") {
    const Config config = parsed(iris, {"training.optimizer={name: adam, beta1: x}"});
    const Section optimizer = config.section("training").section("optimizer");
    CHECK(optimizer.text("name") == "adam");
    CHECK(!optimizer.has("momentum"));
    CHECK(user_error([&] { optimizer.number("beta1"); }) ==
          "--set training.optimizer={name: adam, beta1: x}: training.optimizer.beta1 is 'x'; it must be a "
          "number");
  }
  SUBCASE("fill an empty section") {
    CHECK(parsed("data:\n", {"data.a=1"}).section("data").integer("a") == 1);
  }
}

TEST_CASE("overrides that cannot be") {
  const std::string bad_path = ": the part before '=' must be a path of keys such as training.batch_size";
  CHECK(parse_error(iris, {"training"}) == "--set training: an override is written as key=value");
  for (const std::string text : {"=1", ".a=1", "a.=1", "a..b=1"})
    CHECK(parse_error(iris, {text}) == "--set " + text + bad_path);
  CHECK(parse_error(iris, {"training.batch_size.x=1"}) ==
        "--set training.batch_size.x=1: there is no 'x' within the value '4' at iris.yaml:8:15");
  CHECK(parse_error(iris, {"model.layers.2.units=1"}) ==
        "--set model.layers.2.units=1: '2' names no element of the list of 2 at iris.yaml:3:5");
  CHECK(parse_error(iris, {"model.layers.x=1"}) ==
        "--set model.layers.x=1: 'x' names no element of the list of 2 at iris.yaml:3:5");
  CHECK(parse_error(iris, {"a=[1"}).starts_with("--set a=[1:1:1: this is not valid YAML: "));
}

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
  CHECK(parse_error("a:\n\tb: 1\n") == "iris.yaml:2:1: a tab in the indentation; YAML takes spaces alone");
  CHECK(parse_error(std::string("a: \x04\n")) ==
        "iris.yaml:1:4: the control character 0x04; a configuration is plain text");
  CHECK(parse_error(std::string("a: 1\0b", 6)) ==
        "iris.yaml:1:5: the control character 0x00; a configuration is plain text");
  CHECK(parse_error(R"(a: "x\0y")") ==
        "iris.yaml:1:4: the text holds the character 0, which no name and no path can; leave it out");
  CHECK(parse_error("\"a\\e[31m\": 1\n\"a\\e[31m\": 2\n") ==
        "iris.yaml:2:1: the key 'a\\x1b[31m' is given twice; it stands already at 1:1");
  CHECK(parse_error("a: 1\nb: 2\na: 3\n") ==
        "iris.yaml:3:1: the key 'a' is given twice; it stands already at 1:1");
  CHECK(parse_error("s:\n  a: 1\n  a: 1\n") ==
        "iris.yaml:3:3: the key 'a' is given twice; it stands already at 2:3");
  CHECK(parse_error("a: 1\n---\nb: 2\n") ==
        "iris.yaml:3:1: a second document; a configuration is one document");
  CHECK(parse_error("[a]: 1\n") == "iris.yaml:1:1: a key must be a word");
  CHECK(parse_error("a: !!int 1\n") ==
        "iris.yaml:1:4: the tag 'tag:yaml.org,2002:int' is not supported; leave it out");
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

TEST_CASE("files") {
  const TemporaryFolder folder;
  const std::string path = (folder / "iris.yaml").string();
  CHECK(user_error([&] { Config::load(path); }) ==
        "cannot read '" + path + "': No such file or directory; check the path and its permissions");
  CHECK(user_error([&] { Config::load(folder.path()); }) ==
        "cannot read '" + folder.path().string() + "': it is not a regular file; name another");
  write_text(path, std::string(1048577, '#'));
  CHECK(user_error([&] { Config::load(path); }) ==
        "'" + path + "' has 1048577 bytes; a file of this kind has at most 1048576");
  write_text(path, iris);
  const Config config = Config::load(path, {"training.batch_size=8"});
  CHECK(config.section("training").integer("batch_size") == 8);
  CHECK(to_string(config.section("training").position("optimizer")) == path + ":10:14");
}

TEST_CASE("the values do not depend on how the configuration was written") {
  const Config config = parsed(iris);
  const Config other = parsed(
      "{output: {dir: runs/iris}, training: {optimizer: adam, steps: [10,  20], shuffle: True, "
      "learning_rate: "
      "0.0100,\n"
      " momentum: 9e-1, batch_size: +4}, model: {layers: [{units: 30, type: linear}, {type: linear, bias: "
      "true}]}}",
      {"training.optimizer=sgd", "model.layers.1.units=20"});
  read_all(config);
  read_all(other);
  CHECK(other.values() == config.values());
}

TEST_CASE("the values by path name what differs") {
  const Config config = parsed(iris);
  read_all(config);
  const auto values = config.values();
  CHECK(values.at("training.batch_size") == "4");
  CHECK(values.at("model.layers[1].units") == "20");
  CHECK(values.at("training.momentum") == "0.9");
}

TEST_CASE("a configuration cut or changed anywhere is refused or read, and nothing worse") {
  const auto try_text = [](const std::string& text) {
    try {
      const Config config = parsed(text);
      read_all(config);
      config.check_all_used();
    } catch (const UserError&) {
      // Refused; any other kind of error fails the test.
    }
  };
  for (std::size_t place = 0; place < iris.size(); ++place) {
    try_text(iris.substr(0, place));
    try_text(iris.substr(place));
    for (const char c : std::string("\t\n -:[]{}&*!|>'\"%@`#,?~\\\x80\xff")) {
      std::string changed = iris;
      changed[place] = c;
      try_text(changed);
      changed.insert(place, 3, c);
      try_text(changed);
    }
  }
}
