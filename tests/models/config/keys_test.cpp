#include "models/config/keys.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/models/config/iris_yaml.h"

namespace plexaura::testing::keys_test {

namespace {

using Settings = std::map<std::string, std::string>;

enum class Colour : std::uint8_t { red, green };

struct Options {
  bool flag = true;
  int small = 3;
  std::int64_t whole = 4;
  double number = 0.5;
  std::string text = "x";
  std::string word = "one";
  std::filesystem::path place = "";
  std::vector<std::int64_t> wholes = {1, 2};
  std::vector<double> numbers = {0.5};
  std::vector<std::string> texts = {"a"};
  std::optional<std::int64_t> given = {};
  std::optional<double> share = {};
  std::optional<std::string> label = {};
  std::optional<std::vector<std::int64_t>> stages = {};
  std::optional<std::int64_t> push = 16;
  Colour colour = Colour::green;
  std::vector<Section> layers = {};
};

std::vector<Key> all_keys(Options& options) {
  return {
      {.name = "flag", .into = &options.flag},
      {.name = "small", .into = &options.small, .range = {.minimum = 1}},
      {.name = "whole", .into = &options.whole, .range = {.minimum = 1, .maximum = 8}},
      {.name = "number", .into = &options.number, .range = {.maximum = 1, .above = 0}},
      {.name = "text", .into = &options.text, .rule = "the name of one column"},
      {.name = "word", .into = &options.word, .words = {"one", "two"}},
      {.name = "place", .into = &options.place},
      {.name = "wholes", .into = &options.wholes},
      {.name = "numbers", .into = &options.numbers},
      {.name = "texts", .into = &options.texts},
      {.name = "given", .into = &options.given},
      {.name = "share", .into = &options.share},
      {.name = "label", .into = &options.label},
      {.name = "stages", .into = &options.stages},
      {.name = "push", .into = &options.push, .range = {.minimum = 1}, .word = "epoch"},
      {.name = "colour", .into = one_of(options.colour, {{"red", Colour::red}, {"green", Colour::green}})},
      {.name = "layers", .into = &options.layers},
  };
}

Settings read(const std::string& text, Options& options) {
  const Config config = parsed(text);
  read_keys(config.root(), all_keys(options));
  config.check_all_used();
  return config.values();
}

// A strategy, and a key that some strategies need.
struct Needy {
  std::string strategy = "allreduce";
  std::string compression = "none";
  std::int64_t every = 16;
  double rate = 1;
  double ratio = 0.01;
};

std::vector<Key> needy_keys(Needy& needy) {
  const Need local{.key = "strategy", .values = {"local", "elastic"}, .why = "which sums gradients"};
  return {
      {.name = "strategy", .into = &needy.strategy, .words = {"allreduce", "local", "elastic"}},
      {.name = "every", .into = &needy.every, .range = {.minimum = 1}, .needs = local},
      {.name = "outer.rate", .into = &needy.rate, .needs = local},
      {.name = "compression",
       .into = &needy.compression,
       .words = {"none", "top-k"},
       .needs = {.key = "strategy", .values = {"allreduce"}}},
      {.name = "compression",
       .into = &needy.compression,
       .words = {"none", "bf16"},
       .needs = {.key = "strategy", .values = {"local"}}},
      {.name = "ratio", .into = &needy.ratio, .needs = {.key = "compression", .values = {"top-k"}}},
  };
}

Settings needy(const std::string& text) {
  const Config config = parsed("distributed:\n  " + text + "\n");
  Needy values;
  read_keys(config.section("distributed"), needy_keys(values));
  config.check_all_used();
  return config.values();
}

}  // namespace

TEST_CASE("a key fills its member, and a member that no key fills keeps its default") {
  Options options;
  const Settings defaults = read("flag: true\n", options);
  CHECK(options.whole == 4);
  CHECK(defaults == Settings{{"flag", "true"},
                             {"small", "3"},
                             {"whole", "4"},
                             {"number", "0.5"},
                             {"text", "\"x\""},
                             {"word", "\"one\""},
                             {"place", "\"\""},
                             {"wholes", "[1, 2]"},
                             {"numbers", "[0.5]"},
                             {"texts", "[\"a\"]"},
                             {"push", "16"},
                             {"colour", "\"green\""}});
  const Settings values = read(
      "{flag: false, small: 1, whole: 8, number: 1, text: y, word: two, place: p, wholes: [3], numbers: [2], "
      "texts: [b, c], given: 5, share: 0.25, label: l, stages: [4], push: epoch, colour: red, layers: [{}]}",
      options);
  CHECK(!options.flag);
  CHECK(options.small == 1);
  CHECK(options.whole == 8);
  CHECK(options.number == 1);
  CHECK(options.text == "y");
  CHECK(options.word == "two");
  CHECK(options.place == "p");
  CHECK(options.wholes == std::vector<std::int64_t>{3});
  CHECK(options.numbers == std::vector<double>{2});
  CHECK(options.texts == std::vector<std::string>{"b", "c"});
  CHECK(options.given == 5);
  CHECK(options.share == 0.25);
  CHECK(options.label == "l");
  CHECK(options.stages == std::vector<std::int64_t>{4});
  CHECK(!options.push);
  CHECK(options.colour == Colour::red);
  CHECK(options.layers.size() == 1);
  CHECK(values.at("push") == "\"epoch\"");
  CHECK(values.at("colour") == "\"red\"");
  CHECK(values.at("stages") == "[4]");
}

TEST_CASE("a value that a key does not take names the key and its rule") {
  const auto said = [](const std::string& text) {
    Options options;
    return user_error([&] { read(text, options); });
  };
  CHECK(said("small: 3000000000") ==
        "iris.yaml:1:8: small is '3000000000'; it must be a whole number >= 1 and <= 2147483647");
  CHECK(said("whole: 9") == "iris.yaml:1:8: whole is '9'; it must be a whole number >= 1 and <= 8");
  CHECK(said("number: 0") == "iris.yaml:1:9: number is '0'; it must be a number > 0 and <= 1");
  CHECK(said("text: [a]") == "iris.yaml:1:7: text is a list; it must be the name of one column");
  CHECK(said("word: tow") ==
        "iris.yaml:1:7: word is 'tow'; it must be one of one, two (did you mean 'two'?)");
  CHECK(said("push: 0") == "iris.yaml:1:7: push is '0'; it must be a whole number >= 1, or epoch");
  CHECK(said("colour: blue") == "iris.yaml:1:9: colour is 'blue'; it must be one of red, green");
  CHECK(
      said("txt: a").starts_with("iris.yaml:1:1: unknown key 'txt' at the top; did you mean 'text'? (known"));
}

TEST_CASE("a required key that is missing is looked for among the keys that no table has") {
  std::int64_t epochs = 0;
  std::int64_t epoch = 1;
  const auto said = [&](const std::string& text) {
    return user_error([&] {
      read_keys(parsed(text).root(),
                {{.name = "epochs", .into = &epochs, .required = true}, {.name = "epoch", .into = &epoch}});
    });
  };
  CHECK(said("epcohs: 1") ==
        "iris.yaml:1:1: epochs is missing; is 'epcohs' at iris.yaml:1:1 meant for it? it "
        "must be a whole number");
  CHECK(said("epoch: 1") == "iris.yaml:1:1: epochs is missing; it must be a whole number");
}

TEST_CASE("ends and defaults may depend on the keys before") {
  std::int64_t every = 16;
  std::int64_t parts = 1;
  const std::vector<Key> keys{{.name = "every", .into = &every},
                              {.name = "parts",
                               .into = &parts,
                               .range = {.minimum = 1},
                               .most = [&] { return static_cast<double>(every); },
                               .late_default = {.set = [&] { parts = every / 2; }}}};
  read_keys(parsed("every: 8").root(), keys);
  CHECK(parts == 4);
  CHECK(user_error([&] {
          read_keys(parsed("{every: 8, parts: 9}").root(), keys);
        }).ends_with("parts is '9'; it must be a whole number >= 1 and <= 8"));
}

TEST_CASE("a key that lacks what it needs is refused with the reason, and has no value") {
  CHECK(needy("strategy: allreduce") ==
        Settings{{"distributed.strategy", "\"allreduce\""}, {"distributed.compression", "\"none\""}});
  CHECK(needy("strategy: local").contains("distributed.outer.rate"));
  const auto said = [](const std::string& text) { return user_error([&] { needy(text); }); };
  CHECK(said("every: 2") ==
        "iris.yaml:2:10: distributed.every has no effect here, because distributed.strategy is allreduce, "
        "which sums gradients; remove it, or choose local or elastic");
  CHECK(said("outer: {rate: 2}")
            .starts_with("iris.yaml:2:17: distributed.outer.rate has no effect here, because "));
  CHECK(said("outer: {}") ==
        "iris.yaml:2:10: distributed.outer has no effect here, because distributed.strategy is allreduce, "
        "which sums gradients; remove it, or choose local or elastic");
  needy("{strategy: local, outer: {}}");
  CHECK(said("{strategy: elastic, compression: bf16}")
            .ends_with("because distributed.strategy is elastic; remove it, or choose allreduce or local"));
  CHECK(said("ratio: 0.5").ends_with("because distributed.compression is none; remove it, or choose top-k"));
  CHECK(said("{strategy: elastic, ratio: 0.5}")
            .ends_with("because distributed.strategy is elastic; remove it, or choose allreduce"));
  CHECK(said("{strategy: local, compression: top-k}").ends_with("it must be one of none, bf16"));
}

TEST_CASE("a key may need that another is given") {
  std::optional<std::int64_t> folds;
  std::int64_t fold = 0;
  const std::vector<Key> keys{{.name = "folds", .into = &folds},
                              {.name = "fold", .into = &fold, .needs = {.key = "folds"}}};
  CHECK(user_error([&] { read_keys(parsed("fold: 1").root(), keys); }) ==
        "iris.yaml:1:7: fold has no effect here, because folds is not given; remove it, or give folds");
  read_keys(parsed("{fold: 1, folds: 2}").root(), keys);
  CHECK(fold == 1);
}

}  // namespace plexaura::testing::keys_test
