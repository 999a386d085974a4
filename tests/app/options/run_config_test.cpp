#include "app/options/run_config.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/error_text.h"

namespace plexaura::testing::run_config_test {

TEST_CASE("groups of parameters are sections of their own, and their mistakes have a place") {
  const auto groups = [](const std::string& yaml) {
    const Config config =
        Config::parse(fmt::format("training:\n  epochs: 2\n  batch_size: 2\n  optimizer:\n    name: sgd\n    "
                                  "learning_rate: 0.1\n    groups: {}\n",
                                  yaml),
                      "test.yaml");
    auto read = read_options(config, 0, 1).trainer.optimizer.groups;
    config.check_all_used();
    return read;
  };
  const auto read = groups("[{pattern: 'layer4.*', rate: 0.1}, {pattern: '*.bias', decay: 0}]");
  REQUIRE(read.size() == 2);
  CHECK(read[0].pattern == "layer4.*");
  CHECK(read[0].options.rate == 0.1);
  CHECK(!read[0].options.decay);
  CHECK(read[1].options.rate == 1);
  CHECK(read[1].options.decay == 0);
  const auto refusal = [&](const std::string& yaml) { return user_error([&] { groups(yaml); }); };
  CHECK(
      refusal("[{rate: 2}]").starts_with("test.yaml:7:14: training.optimizer.groups[0].pattern is missing"));
  CHECK(refusal("[{pattern: a, rate: 0}]") ==
        "test.yaml:7:33: training.optimizer.groups[0].rate is '0'; it must be a number > 0");
  CHECK(refusal("[{pattern: a, rate: 1e-39}]")
            .ends_with("rate is 1e-39, which makes the learning rate 0 in float32; give a larger number"));
  CHECK(refusal("[{pattern: a, decay: 1e-39}]").ends_with("which is 0 in float32; give a larger number"));
  CHECK(refusal("[{pattern: a, rates: 2}]").find("did you mean 'rate'?") != std::string::npos);
  CHECK(refusal("{pattern: a}").find("training.optimizer.groups") != std::string::npos);
}

}  // namespace plexaura::testing::run_config_test
