#include "app/observed_metrics.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"

namespace plexaura::testing::observed_metrics_test {

namespace {

std::string refusal(const std::string& training, const TrainerOptions& options) {
  const Config config = Config::parse("training:\n  " + training + "\n", "x.yaml");
  return user_error([&] { check_observed_metrics(config, options, {"accuracy", "accuracy_top5"}); });
}

}  // namespace

TEST_CASE("a goal that the model does not report is an error with its place and the metrics that exist") {
  CHECK(refusal("goal: {metric: acuracy}", {.goal = EpochGoal{.metric = "acuracy"}}) ==
        "x.yaml:2:18: training.goal.metric is 'acuracy', which the validation of this model does not report; "
        "give "
        "loss, accuracy or accuracy_top5; did you mean 'accuracy'?");
  const Schedule plateau({.decay = Plateau{.metric = "mae"}});
  CHECK(refusal("schedule: {name: plateau, metric: mae}", {.learning_rate = plateau}) ==
        "x.yaml:2:37: training.schedule.metric is 'mae', which the validation of this model does not report; "
        "give "
        "loss, accuracy or accuracy_top5");
}

TEST_CASE("the loss and the metrics of the model may be observed") {
  const Config config = Config::parse("training: {}\n", "x.yaml");
  for (const char* metric : {"loss", "accuracy_top5"})
    check_observed_metrics(config, {.goal = EpochGoal{.metric = metric}}, {"accuracy", "accuracy_top5"});
  check_observed_metrics(config, {}, {});
}

}  // namespace plexaura::testing::observed_metrics_test
