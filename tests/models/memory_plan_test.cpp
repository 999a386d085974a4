// Checks the memory plans of the zoo's training programs: no instruction overwrites a value that is still
// read, and the arena is hardly larger than the values that are alive at one time.

#include <doctest/doctest.h>

#include "models/zoo/model.h"
#include "tests/support/backend.h"
#include "tests/support/check_program.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing::memory_plan_test {

namespace {

void check_plan(const std::string& yaml, const Shape& sample, std::int64_t classes, std::int64_t samples,
                const std::vector<std::string>& overrides = {}) {
  const Config config = Config::load(std::string(PLEXAURA_SOURCE) + "/models/" + yaml, overrides);
  const auto model = make_model(config, sample, classes);
  const ParameterStore store = make_store(*model, DType::float32);
  std::vector<std::int64_t> extents{samples};
  extents.insert(extents.end(), sample.begin(), sample.end());
  std::shared_ptr<const Program> first;
  for (const bool placed : {false, true}) {
    Graph graph;
    const Node x = graph.input("x", {DType::float32, Shape(extents)});
    const Node labels = graph.input("labels", {DType::int64, Shape{samples}});
    const auto outputs = training_outputs(graph, build_loss(*model, (*model)(x), labels), store, samples);
    const auto program = compile(graph, outputs, test_backend(),
                                 {.placement = placed ? &first->placement : nullptr, .apply_updates = false});
    CAPTURE(yaml);
    CAPTURE(placed);
    CHECK(check_arena(*program) == "");
    CHECK(program->arena_bytes >= program->estimates.arena_lower_bound);
    CHECK(static_cast<double>(program->arena_bytes) <=
          1.05 * static_cast<double>(program->estimates.arena_lower_bound));
    MESSAGE(yaml, ": ", program->instructions.size(), " instructions, ", program->reorders,
            " reorders, arena ", program->arena_bytes, " bytes, lower bound ",
            program->estimates.arena_lower_bound);
    first = program;
  }
}

}  // namespace

TEST_CASE("the plan of the mlp") { check_plan("iris.yaml", {4}, 3, 8); }
TEST_CASE("the plans of the nets for digits") {
  check_plan("mnist_mlp.yaml", {1, 28, 28}, 10, 16);
  check_plan("mnist_cnn.yaml", {1, 28, 28}, 10, 16);
  check_plan("mnist_cnn.yaml", {1, 28, 28}, 10, 128);
}
TEST_CASE("the plans of small ResNets") {
  check_plan("resnet18.yaml", {3, 224, 224}, 1000, 8);
  check_plan("resnet34.yaml", {3, 64, 64}, 10, 2);
}
// The smaller plans cover the same code with a sanitizer.
TEST_CASE("the plans of ResNet50" * doctest::skip(address_sanitized)) {
  check_plan("resnet50.yaml", {3, 64, 64}, 1000, 4);
  check_plan("resnet50.yaml", {3, 224, 224}, 1000, 16);
}
TEST_CASE("the plan of the largest ResNet" * doctest::skip(address_sanitized)) {
  check_plan("resnet152.yaml", {3, 64, 64}, 5, 3);
}

}  // namespace plexaura::testing::memory_plan_test
