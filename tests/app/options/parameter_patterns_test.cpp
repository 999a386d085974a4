#include "app/options/parameter_patterns.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/error_text.h"

namespace plexaura::testing::parameter_patterns_test {

namespace {

// Applies the patterns of a section `training` to the parameters fc1.weight and fc1.bias.
std::vector<ParameterSpec> applied(const std::string& freeze, const std::string& groups) {
  const Config config = Config::parse(
      fmt::format("training:\n  epochs: 1\n  batch_size: 1\n  freeze: {}\n  optimizer:\n    name: sgd\n    "
                  "learning_rate: 1\n{}",
                  freeze, groups.empty() ? "" : "    groups: " + groups + "\n"),
      "x.yaml");
  std::vector<ParameterSpec> specs(2);
  specs[0].name = "fc1.weight";
  specs[1].name = "fc1.bias";
  apply_patterns(config, read_options(config, 0, 1), specs);
  return specs;
}

std::string refusal(const std::string& freeze, const std::string& groups) {
  return user_error([&] { applied(freeze, groups); });
}

}  // namespace

TEST_CASE("patterns freeze parameters, and groups that have some are accepted") {
  const auto specs = applied("['*.bias']", "[{pattern: '*.weight', rate: 2}]");
  CHECK(specs[0].role == ParameterRole::trainable);
  CHECK(specs[1].role == ParameterRole::frozen);
  CHECK(applied("[]", "").size() == 2);
}

TEST_CASE("a pattern that fits nothing is an error with its place") {
  CHECK(refusal("['fc2.*']", "")
            .starts_with(
                "x.yaml:4:11: training.freeze does not fit the model: no parameter is named like 'fc2.*'"));
  CHECK(refusal("[]", "[{pattern: '*.bias'}, {pattern: fc2.weight}]") ==
        "x.yaml:8:45: training.optimizer.groups[1].pattern does not fit the model: the group of parameters "
        "'fc2.weight' has no effect: no parameter is named like its pattern; did you mean 'fc1.weight'?");
  CHECK(refusal("[]", "[{pattern: '*'}, {pattern: '*.bias'}, {pattern: nothing}]")
            .starts_with(
                "x.yaml:8:40: training.optimizer.groups[1].pattern does not fit the model: the group "
                "of parameters '*.bias' has no effect: each of its parameters fits a group before it"));
  CHECK(refusal("['*.bias']", "[{pattern: '*.bias'}]")
            .starts_with("x.yaml:8:24: training.optimizer.groups[0].pattern does not fit the model: "));
}

}  // namespace plexaura::testing::parameter_patterns_test
