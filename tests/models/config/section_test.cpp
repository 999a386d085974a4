#include <doctest/doctest.h>

#include "models/config/config.h"
#include "tests/models/config/iris_yaml.h"

namespace plexaura::testing::section_test {

namespace {

// Returns the error of reading the section `training` of this text.
template <class F>
std::string training_error(const std::string& text, F&& read) {
  const Config config = parsed(text);
  return user_error([&] { read(config.section("training")); });
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

TEST_CASE("a word may stand for no number") {
  CHECK(parsed("a: 1").root().integer_or_word("a", "all") == 1);
  CHECK(parsed("a: all").root().integer_or_word("a", "all") == std::nullopt);
  CHECK(parsed("a: [1, 2.5]").root().numbers_or_word("a", "equal") == std::vector<double>{1, 2.5});
  CHECK(parsed("a: equal").root().numbers_or_word("a", "equal") == std::nullopt);
}

TEST_CASE("a reader says what a text or a number is, where another kind of value stands") {
  CHECK(training_error("training:\n  a: [6, 7]\n", [](const Section& s) {
          s.text("a", "the name of one column");
        }) == "iris.yaml:2:6: training.a is a list; it must be the name of one column");
  CHECK(training_error("training:\n  a: {b: 1}\n", [](const Section& s) {
          s.number("a", {.above = 0}, "one rate");
        }).ends_with("training.a is a section of keys; it must be one rate > 0"));
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
          s.integer("batch_size", {.minimum = 1, .maximum = 8});
        }) == "iris.yaml:2:15: training.batch_size is 'many'; it must be a whole number >= 1 and <= 8");
  CHECK(training_error(text, [](const Section& s) {
          s.integer_or_word("batch_size", "all", {.minimum = 1});
        }) == "iris.yaml:2:15: training.batch_size is 'many'; it must be a whole number >= 1, or all");
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

}  // namespace plexaura::testing::section_test
