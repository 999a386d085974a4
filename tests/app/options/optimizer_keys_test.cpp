#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "app/options/run_keys.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::optimizer_keys_test {

namespace {

// Reads the groups of a configuration in line 7.
std::vector<ParameterGroup> groups(const std::string& yaml) {
  const Config config =
      Config::parse(fmt::format("training:\n  epochs: 2\n  batch_size: 2\n  optimizer:\n    name: adamw\n    "
                                "learning_rate: 0.1\n    groups: {}\n",
                                yaml),
                    "test.yaml");
  auto read = read_options(config, 0, 1).trainer.optimizer.groups;
  config.check_all_used();
  return read;
}

}  // namespace

TEST_CASE("a group may have an optimizer of its own, with the keys of a rule") {
  const auto read = groups(
      "[{pattern: '*.bias', rate: 10, decay: 0, optimizer: {name: sgd, momentum: 0.9, nesterov: true}}, "
      "{pattern: 'fc1.*', optimizer: {name: rmsprop, alpha: 0.5}}, {pattern: 'fc2.*'}]");
  REQUIRE(read.size() == 3);
  const OptimizerSpec* const sgd = read[0].options.optimizer.spec();
  REQUIRE(sgd != nullptr);
  CHECK(sgd->kind == OptimizerSpec::sgd);
  CHECK(sgd->momentum == 0.9);
  CHECK(sgd->nesterov);
  CHECK(read[0].options.rate == 10);
  const OptimizerSpec* const rmsprop = read[1].options.optimizer.spec();
  REQUIRE(rmsprop != nullptr);
  CHECK(rmsprop->kind == OptimizerSpec::rmsprop);
  CHECK(rmsprop->alpha == 0.5);
  CHECK(read[2].options.optimizer.spec() == nullptr);
}

TEST_CASE("mistakes in the optimizer of a group have a place") {
  const auto refusal = [](const std::string& optimizer) {
    return user_error([&] { groups(fmt::format("[{{pattern: a, optimizer: {}}}]", optimizer)); });
  };
  CHECK(refusal("{momentum: 0.9}").find("training.optimizer.groups[0].optimizer.name is missing") !=
        std::string::npos);
  CHECK(refusal("{name: sdg}").find("did you mean 'sgd'?") != std::string::npos);
  CHECK(refusal("{name: adam, momentum: 0.9}")
            .find("groups[0].optimizer.momentum has no effect here, because "
                  "training.optimizer.groups[0].optimizer.name is adam") != std::string::npos);
  CHECK(refusal("{name: sgd, nesterov: true}").ends_with("nesterov needs a momentum above 0"));
  CHECK(refusal("{name: adam, epsilon: 1e-39}").ends_with("which is 0 in float32; give a larger number"));
  for (const char* key : {"learning_rate", "weight_decay", "max_gradient_norm"})
    CHECK(refusal(fmt::format("{{name: sgd, {}: 0.1}}", key))
              .find(fmt::format("unknown key '{}' in training.optimizer.groups[0].optimizer", key)) !=
          std::string::npos);
}

}  // namespace plexaura::testing::optimizer_keys_test
