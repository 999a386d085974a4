#include "app/options/schedule_input.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "app/options/run_config.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::schedule_input_test {

namespace {

// Reads a schedule for a run of 4 epochs with 10 steps each and the learning rate 0.8.
Schedule read(const std::string& schedule, std::int64_t samples = 20) {
  const Config config =
      Config::parse(fmt::format("training:\n  epochs: 4\n  batch_size: 2\n  optimizer: {{name: sgd, "
                                "learning_rate: 0.8}}\n  schedule: {{{}}}\n",
                                schedule),
                    "test.yaml");
  const Schedule made = read_options(config, samples, 1).trainer.learning_rate;
  config.check_all_used();
  return made;
}

std::string refusal_of(const std::string& schedule) {
  return user_error([&] { read(schedule); });
}

// Compares the rates of some steps, as shares of the learning rate.
void check_rates(const std::string& schedule, const std::vector<std::pair<std::int64_t, double>>& expected) {
  CAPTURE(schedule);
  const Schedule made = read(schedule);
  for (const auto& [step, share] : expected) {
    CAPTURE(step);
    CHECK(made.learning_rate(step) == doctest::Approx(0.8 * share).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("each schedule has its keys, with times in epochs") {
  check_rates("name: step, every_epochs: 1.5, gamma: 0.5", {{14, 1}, {15, 0.5}, {30, 0.25}});
  check_rates("name: multi_step, milestones: [1, 2.5]", {{9, 1}, {10, 0.1}, {24, 0.1}, {25, 0.01}});
  check_rates("name: exponential, gamma: 0.25", {{0, 1}, {5, 0.5}, {10, 0.25}, {20, 0.0625}});
  check_rates("name: linear, start: 0.5, end: 0.1", {{0, 0.5}, {20, 0.3}, {40, 0.1}});
  check_rates("name: polynomial, power: 2, warmup_epochs: 2",
              {{9, 0.5}, {20, 1}, {30, 0.25}, {38, 0.01}, {40, 0}});
  check_rates("name: cosine, floor: 0.08", {{0, 1}, {20, 0.55}, {40, 0.1}});
  check_rates("name: cosine_restarts, first_epochs: 1, growth: 2, floor: 0.08",
              {{0, 1}, {5, 0.55}, {10, 1}, {20, 0.55}, {30, 1}});
  check_rates("name: cyclic, up_epochs: 0.5, floor: 0.08", {{0, 0.1}, {5, 1}, {10, 0.1}, {15, 1}});
  check_rates("name: cyclic, up_epochs: 0.5, down_epochs: 1.5, mode: triangular2",
              {{0, 0}, {5, 1}, {20, 0}, {25, 0.5}});
  check_rates("name: cyclic, up_epochs: 1, mode: exp_range, gamma: 0.5",
              {{5, 0.5 * 0.70710678118654757}, {10, 0.5}, {30, 0.125}});
  check_rates("name: one_cycle, start_divisor: 10, rising: 0.5", {{0, 0.1}, {19, 1}});
}

TEST_CASE("the parts of a sequence follow one another, each with its length and its peak") {
  check_rates(
      "name: sequence, parts: [{name: linear, start: 0.1, end: 1, epochs: 1}, {name: constant, rate: 0.5, "
      "steps: 5}, {name: cosine}]",
      {{0, 0.1}, {5, 0.55}, {10, 0.5}, {14, 0.5}, {15, 1}, {40, 0}});
  check_rates("name: sequence, parts: [{name: constant, epochs: 3}, {name: linear, steps: 10}]",
              {{29, 1}, {30, 1}, {35, 0.5}, {40, 0}});
}

TEST_CASE("a sequence is read without a training set, whose length is not known then") {
  const std::string parts =
      "name: sequence, parts: [{name: linear, steps: 500}, {name: constant, epochs: 100}, {name: cosine}]";
  CHECK(read(parts, 0).learning_rate(0) == 0.8);
}

TEST_CASE("parts that do not fill the run are refused with their place") {
  const auto refusal = [](const std::string& parts) {
    return refusal_of(fmt::format("name: sequence, parts: [{}]", parts));
  };
  const std::string second = "{name: constant, epochs: 1}, ";
  CHECK(refusal("") ==
        "test.yaml:5:37: training.schedule.parts is an empty list; give schedules, or another name");
  CHECK(
      refusal("{name: constant}, {name: cosine}") ==
      "test.yaml:5:38: training.schedule.parts[0].epochs is missing; give the length of the part in epochs, "
      "or in steps as steps; only the last part needs none");
  CHECK(refusal("{name: constant, epochs: 4}, {name: cosine}") ==
        "test.yaml:5:63: training.schedule.parts[0].epochs makes the part end 40 steps after its start at "
        "step 0, "
        "and the run has 40 steps, so that the next part never begins; give fewer, or more training.epochs");
  CHECK(
      refusal(second + "{name: cosine, steps: 31}")
          .ends_with("parts[1].steps makes the part end 31 steps after its start at step 10, and the run has "
                     "40 steps; give fewer, or more training.epochs"));
  CHECK(
      refusal(second + "{name: cosine, epochs: 2}")
          .ends_with("parts[1].epochs ends the last part at step 30, and the run has 40 steps; leave it out, "
                     "so that the part lasts until the end of the run"));
  CHECK(refusal("{name: constant, epochs: 1, steps: 10}, {name: cosine}")
            .ends_with("parts[0].steps and epochs are both given; give one of them"));
  CHECK(refusal(second + "{name: plateau}")
            .find("parts[1].name is 'plateau'; it must be one of constant, step, ") != std::string::npos);
  CHECK(refusal(second + "{name: cosine, warmup_epochs: 1}").find("warmup_epochs") != std::string::npos);
  CHECK(refusal(second + "{name: constant, rate: 1e39}")
            .ends_with("parts[1].rate is 1e+39, which makes the learning rate infinite in float32; give a "
                       "smaller number"));
  CHECK(refusal(second + "{name: cosine, rate: 0.5, floor: 0.5}")
            .ends_with("parts[1].floor is 0.5, above the peak: training.optimizer and rate make the learning "
                       "rate 0.4; give at most that"));
  CHECK(refusal_of("name: cosine, parts: [{name: cosine}]")
            .find("training.schedule.parts has no effect here, because training.schedule.name is cosine") !=
        std::string::npos);
}

TEST_CASE("times that never come in the run or the part are refused with their place") {
  const auto never = [](const std::string& schedule, const std::string& expected) {
    CAPTURE(schedule);
    const std::string refusal = refusal_of(schedule);
    CAPTURE(refusal);
    CHECK(refusal.starts_with("test.yaml:5:"));
    CHECK(refusal.ends_with(expected));
  };
  const std::string advice = ", so that this never comes; give fewer epochs, or make that longer";
  const std::string run = " after 40 steps, and the run has 40" + advice;
  never("name: multi_step, milestones: [1, 4]", "schedule.milestones has a drop of the rate" + run);
  never("name: step, every_epochs: 4", "schedule.every_epochs lets the rate drop" + run);
  never("name: cyclic, up_epochs: 4, down_epochs: 1", "schedule.down_epochs lets the rate fall" + run);
  never("name: sequence, parts: [{name: multi_step, milestones: [2], epochs: 2}, {name: cosine}]",
        "parts[0].milestones has a drop of the rate after 20 steps, and the part has 20" + advice);
  const std::string short_time = " epochs, less than a step, and an epoch has 10 steps; give at least 0.1";
  never("name: cosine_restarts, first_epochs: 0.001", "schedule.first_epochs is 0.001" + short_time);
  never("name: step, every_epochs: 1e-300", "schedule.every_epochs is 1e-300" + short_time);
  never("name: constant, warmup_epochs: 0.01", "schedule.warmup_epochs is 0.01" + short_time);
  never("name: sequence, parts: [{name: constant, epochs: 0.01}, {name: cosine}]",
        "parts[0].epochs is 0.01" + short_time);
  check_rates("name: constant, warmup_epochs: 4", {{0, 0.025}, {39, 1}});
  check_rates("name: cosine, warmup_epochs: 4", {{0, 0.025}, {39, 1}});
  CHECK(read("name: step, every_epochs: 100", 0).learning_rate(0) == 0.8);
}

TEST_CASE("impossible values of schedules are refused with their place") {
  const auto found = [](const std::string& schedule, const std::string& text) {
    CAPTURE(schedule);
    const std::string refusal = refusal_of(schedule);
    CAPTURE(refusal);
    CHECK(refusal.starts_with("test.yaml:5:"));
    CHECK(refusal.find(text) != std::string::npos);
  };
  found("name: multi_step, milestones: [2, 1]",
        "training.schedule.milestones is [2, 1]; it must be a list of epochs in increasing order");
  found("name: multi_step, milestones: []", "training.schedule.milestones is []");
  found("name: multi_step, milestones: [0]", "training.schedule.milestones[0] is '0'");
  found("name: multi_step", "training.schedule.milestones is missing");
  found("name: exponential", "training.schedule.gamma is missing");
  found("name: exponential, gamma: 1.5", "training.schedule.gamma is '1.5'");
  found("name: linear, start: 0", "training.schedule.start is '0'");
  found("name: linear, warmup_epochs: 1", "warmup_epochs has no effect here");
  found("name: polynomial, power: 0", "training.schedule.power is '0'");
  found("name: cosine_restarts", "training.schedule.first_epochs is missing");
  found("name: cosine_restarts, first_epochs: 1, growth: 0", "training.schedule.growth is '0'");
  found("name: cosine_restarts, first_epochs: 1, floor: 2", "training.schedule.floor is 2, above the peak");
  found("name: cyclic, up_epochs: 1, mode: max",
        "training.schedule.mode is 'max'; it must be one of triangular, ");
  found(
      "name: cyclic, up_epochs: 1, gamma: 0.5",
      "training.schedule.gamma has no effect here, because training.schedule.mode is triangular; remove it, "
      "or choose exp_range");
  found("name: cyclic, up_epochs: 1, mode: exp_range", "training.schedule.gamma is missing");
  found("name: plateau, mode: triangular",
        "training.schedule.mode is 'triangular'; it must be one of min, max");
  found("name: cosines", "did you mean 'cosine'?");
}

}  // namespace plexaura::testing::schedule_input_test
