#include "app/report/memory_text.h"

#include <doctest/doctest.h>

namespace plexaura::testing::memory_text_test {

TEST_CASE("the error of a step that needs too much memory has the position of the key") {
  const Config config = Config::parse("training:\n  memory: 10\n", "test.yaml");
  const StepMemoryError error({.program = "the update", .memory = 10, .least = 30, .others = 20});
  CHECK(std::string(memory_error(config, error).what()) ==
        "test.yaml:2:11: training.memory is 10 bytes, and the update needs 30 bytes (20 of them "
        "for "
        "parameters, gradients, the optimizer's state and inputs); raise it");
}

}  // namespace plexaura::testing::memory_text_test
