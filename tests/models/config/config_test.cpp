#include "models/config/config.h"

#include <doctest/doctest.h>

#include "tests/models/config/iris_yaml.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::config_test {

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
  SUBCASE("are texts as they stand, unless they begin with a bracket or a quote") {
    for (const std::string value : {"|", ",", "%x", "\t", ";", "~", "a: b", "- 1", "&x", "null", "8 # x"})
      CHECK(parsed(iris, {"data.a=" + value}).section("data").text("a") == value);
    CHECK(parsed(iris, {"data.a=  b c "}).section("data").text("a") == "b c");
    CHECK(parsed(iris, {"data.a="}).section("data").text("a").empty());
    CHECK(parsed(iris, {"data.a=\"\\t\""}).section("data").text("a") == "\t");
    CHECK(parsed(iris, {"data.a=' '"}).section("data").text("a") == " ");
    CHECK(parsed(iris, {"data.a= [1, 2]"}).section("data").integers("a") == std::vector<std::int64_t>{1, 2});
    CHECK(parsed(iris, {"data=\n  a: 1\n  b: 2"}).section("data").integer("b") == 2);
    CHECK(parse_error(iris, {"data.a=x\x01"}) ==
          "--set data.a=x\x01: the control character 0x01, but a configuration is plain text; remove it");
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
      // The text was refused. Any other error fails the test.
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

}  // namespace plexaura::testing::config_test
