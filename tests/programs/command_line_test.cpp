#include "models/programs/command_line.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "tests/support/error_text.h"

namespace plexaura::testing::command_line_test {

namespace {

using Words = std::vector<std::string>;

CommandLine parse(const Words& words) {
  std::vector<const char*> argv{"mlp"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_command_line("mlp", static_cast<int>(argv.size()), argv.data());
}

}  // namespace

TEST_CASE("options may stand before the YAML file, as --help shows them") {
  const CommandLine set = parse({"--set", "a=1", "--set", "b=2", "run.yaml"});
  CHECK(set.config == "run.yaml");
  CHECK(set.set == Words{"a=1", "b=2"});
  const CommandLine skip = parse({"--weights", "w", "--skip", "fc1.*", "--skip", "fc2.*", "run.yaml"});
  CHECK(skip.config == "run.yaml");
  CHECK(skip.skip == Words{"fc1.*", "fc2.*"});
}

TEST_CASE("--predict takes several files, and says so where one of them was to be the YAML file") {
  const CommandLine line = parse({"run.yaml", "--predict", "a.png", "b.png"});
  CHECK(line.config == "run.yaml");
  CHECK(line.predict == Words{"a.png", "b.png"});
  CHECK(parse({"--predict", "a.png", "--backend", "cpu", "run.yaml"}).config == "run.yaml");
  CHECK(user_error([] {
          parse({"--predict", "a.png", "run.yaml"});
        }) ==
        "mlp: no YAML file was named, for --predict takes all files behind it; write the YAML file first: "
        "mlp FILE.yaml --predict a.png");
}

}  // namespace plexaura::testing::command_line_test
