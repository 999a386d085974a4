#pragma once

#include <string>
#include <vector>

#include "models/config/keys.h"
#include "tests/support/error_text.h"

namespace plexaura::testing {

// A configuration for tests, and functions that read all of it.
inline const std::string iris =
    "model:\n"
    "  layers:\n"
    "    - type: linear\n"
    "      units: 30\n"
    "    - type: linear\n"
    "      units: 20\n"
    "training:\n"
    "  batch_size: 4\n"
    "  learning_rate: 1e-2\n"
    "  optimizer: sgd\n"
    "  shuffle: true\n"
    "  steps: [10, 20]\n"
    "output:\n"
    "  dir: \"runs/iris\"\n";

inline Config parsed(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return Config::parse(text, "iris.yaml", overrides);
}

inline std::string parse_error(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return user_error([&] { parsed(text, overrides); });
}

inline void read_all(const Config& config) {
  for (const Section& layer : config.section("model").sections("layers")) {
    std::string type;
    std::int64_t units = 1;
    bool bias = true;
    read_keys(layer, {{.name = "type", .into = &type, .words = {"linear", "relu"}, .required = true},
                      {.name = "units", .into = &units},
                      {.name = "bias", .into = &bias}});
  }
  const Section training = config.section("training");
  training.integer("batch_size");
  training.number("learning_rate");
  training.choice("optimizer", {"sgd", "adam"});
  training.flag("shuffle");
  training.integers("steps");
  double momentum = 0.9;
  read_keys(training, {{.name = "momentum", .into = &momentum}});
  config.section("output").text("dir");
}

}  // namespace plexaura::testing
