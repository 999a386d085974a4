#include "app/options/run_config.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <string>

#include "tests/support/error_text.h"

namespace plexaura::testing::run_config_test {

namespace {

// Reads a section `training` for 20 samples on one rank.
TrainerOptions read(const std::string& training) {
  const Config config =
      Config::parse(fmt::format("training: {{epochs: 2, batch_size: 2, {}}}\n", training), "test.yaml");
  TrainerOptions options = read_options(config, 20, 1).trainer;
  config.check_all_used();
  return options;
}

std::string refusal_of(const std::string& training) {
  return user_error([&] { read(training); });
}

}  // namespace

TEST_CASE("the keys of RMSProp and Adagrad set the options of that name") {
  const OptimizerSpec rmsprop =
      read("optimizer: {name: rmsprop, learning_rate: 0.1, alpha: 0.9, centered: true, momentum: 0.8}")
          .optimizer;
  CHECK(rmsprop.kind == OptimizerSpec::rmsprop);
  CHECK(rmsprop.alpha == 0.9);
  CHECK(rmsprop.centered);
  CHECK(rmsprop.momentum == 0.8);
  const OptimizerSpec adagrad = read(
                                    "optimizer: {name: adagrad, learning_rate: 0.1, lr_decay: 0.2, "
                                    "initial_accumulator: 0.3, epsilon: 1e-9}")
                                    .optimizer;
  CHECK(adagrad.kind == OptimizerSpec::adagrad);
  CHECK(adagrad.lr_decay == 0.2);
  CHECK(adagrad.initial_accumulator == 0.3);
  CHECK(adagrad.epsilon == 1e-9);
  for (const auto& [name, key] : std::map<std::string, std::string>{{"adagrad", "alpha: 0.9"},
                                                                    {"sgd", "centered: true"},
                                                                    {"rmsprop", "lr_decay: 0.1"},
                                                                    {"adam", "initial_accumulator: 0.1"}})
    CHECK(refusal_of(fmt::format("optimizer: {{name: {}, learning_rate: 0.1, {}}}", name, key))
              .find("has no effect here, because training.optimizer.name is " + name) != std::string::npos);
}

TEST_CASE("the keys of a plateau make its schedule, with a warm-up in epochs") {
  const std::string sgd = "optimizer: {name: sgd, learning_rate: 0.1}, schedule: ";
  const Schedule schedule =
      read(sgd +
           "{name: plateau, warmup_epochs: 1, metric: accuracy, mode: max, factor: 0.5, "
           "patience: 3, threshold: 0.01, cooldown: 2, min_lr: 0.001}")
          .learning_rate;
  REQUIRE(schedule.plateau() != nullptr);
  const Plateau& plateau = *schedule.plateau();
  CHECK(schedule.options().warmup_steps == 10);
  CHECK(plateau.metric == "accuracy");
  CHECK(plateau.mode == Plateau::max);
  CHECK(plateau.factor == 0.5);
  CHECK(plateau.patience == 3);
  CHECK(plateau.threshold == 0.01);
  CHECK(plateau.cooldown == 2);
  CHECK(plateau.min_lr == 0.001);
  CHECK(refusal_of(sgd + "{name: plateau, min_lr: 5}")
            .ends_with(
                "training.schedule.min_lr is 5, above the peak: training.optimizer makes the learning rate "
                "0.1; give at most that"));
  CHECK(refusal_of(sgd + "{name: plateau, factor: 1}").find("training.schedule.factor is '1'") !=
        std::string::npos);
  CHECK(
      refusal_of(sgd + "{name: cosine, patience: 5}")
          .find("training.schedule.patience has no effect here, because training.schedule.name is cosine") !=
      std::string::npos);
}

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
  CHECK(refusal("[]") ==
        "test.yaml:7:13: training.optimizer.groups is an empty list, which has no effect; remove it, or give "
        "groups");
  CHECK(
      refusal("[{pattern: a, rate: 1e40}]") ==
      "test.yaml:7:33: training.optimizer.groups[0].rate is 1e+40, which makes the learning rate infinite in "
      "float32; give a smaller number");
  CHECK(refusal("[{pattern: a, rate: 1e-39}]")
            .ends_with("rate is 1e-39, which makes the learning rate 0 in float32; give a larger number"));
  CHECK(refusal("[{pattern: a, rate: 4e38}]")
            .ends_with("rate is 4e+38, which is infinite in float32; give a smaller number"));
  CHECK(refusal("[{pattern: a, decay: 1e-39}]").ends_with("which is 0 in float32; give a larger number"));
  CHECK(refusal("[{pattern: a, rates: 2}]").find("did you mean 'rate'?") != std::string::npos);
  CHECK(refusal("{pattern: a}").find("training.optimizer.groups") != std::string::npos);
}

}  // namespace plexaura::testing::run_config_test
