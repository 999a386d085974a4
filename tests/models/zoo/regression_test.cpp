#include "models/zoo/regression.h"

#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>

#include "backends/registry.h"
#include "tests/support/error_text.h"
#include "training/data/loader.h"
#include "training/data/tensor_dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::regression_test {

namespace {

std::unique_ptr<Model> make(const std::string& keys, std::vector<double> units = {}) {
  const Config config = Config::parse("model: {name: mlp, hidden: [], " + keys + "}\n", "x.yaml");
  auto model = make_model(config.section("model"), Shape{1}, 2, {}, std::move(units));
  config.check_all_used();
  return model;
}

// Evaluates a model that predicts x and 2 x for 0, 1, 3, against targets that differ from this by 1, -2, 0 and
// by 0, 0, 0.5.
Validation validate_lines(Model& model, ArenaTypes types = ArenaTypes::all(DType::float32),
                          std::int64_t batch_size = 3) {
  const auto backend = open_backend("cpu");
  ParameterStore store = make_store(model, DType::float32, 1);
  store.set_types(types);
  store.write("fc1.weight", Tensor::of<float>({2, 1}, {1, 2}));
  const auto data = tensor_dataset({{"samples", Tensor::of<float>({3, 1}, {0, 1, 3})},
                                    {"targets", Tensor::of<float>({3, 2}, {1, 0, -1, 2, 3, 6.5})}});
  SingleProcess alone;
  Evaluator evaluator(builder_of(model), data->fields(), store, *backend, alone);
  return validate(evaluator, data, alone, {.batch_size = batch_size});
}

}  // namespace

TEST_CASE("the losses of a regression are means over samples and targets") {
  const std::map<std::string, double> expected{
      {"mse", (1 + 4 + 0.25) / 6}, {"l1", 3.5 / 6}, {"huber", (0.5 + 1.5 + 0.125) / 6}};
  for (const auto& [name, loss] : expected) {
    CAPTURE(name);
    const auto model = make("task: regression, loss: " + name);
    CHECK(validate_lines(*model).loss == doctest::Approx(loss).epsilon(1e-6));
  }
  const auto model = make("task: regression");
  CHECK(model->info().loss == Loss::mse);
}

TEST_CASE("the figures of a regression are those of their definitions, in the units of the targets") {
  const auto model = make("task: regression", {10, 1});
  for (const std::int64_t batch_size : {3, 2, 1}) {
    const Validation found = validate_lines(*model, ArenaTypes::all(DType::float32), batch_size);
    const std::vector<TargetFigures> targets = target_figures(found.totals, 3, model->info().target_units);
    REQUIRE(targets.size() == 2);
    const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-12); };
    CHECK(targets[0].mae == near(10));
    CHECK(targets[0].rmse == near(10 * std::sqrt(5.0 / 3)));
    CHECK(targets[0].r2 == near(1 - 5.0 / 8));  // the targets are 1, -1, 3
    CHECK(targets[1].mae == near(0.5 / 3));
    CHECK(targets[1].r2 == near(1 - 0.25 / (4 + 42.25 - 8.5 * 8.5 / 3)));
    CHECK(value_of("mae", found.metrics) == near((10 + 0.5 / 3) / 2));
    CHECK(value_of("rmse", found.metrics) == near(std::sqrt((500 + 0.25) / 6)));
    CHECK(value_of("r2", found.metrics) == near((targets[0].r2 + targets[1].r2) / 2));
  }
}

TEST_CASE("the figures of a regression exist in mixed precision") {
  const auto model = make("task: regression");
  const Validation found = validate_lines(*model, ArenaTypes::mixed(DType::bfloat16));
  CHECK(value_of("mae", found.metrics) == doctest::Approx(3.5 / 6));  // these numbers are exact in bfloat16
}

TEST_CASE("a target that is the same in all samples has no R2") {
  // Three samples with the target 0.1 each, and an error of 0.5.
  const std::array<double, 4> totals{1.5, 0.75, 3 * 0.1, 3 * 0.1 * 0.1};
  CHECK(std::isnan(target_figures(totals, 3, {})[0].r2));
  CHECK(target_figures(totals, 3, {})[0].rmse == doctest::Approx(0.5));
}

TEST_CASE("a model says what its task is") {
  CHECK(expected_field(*make("loss: squared_error")) == Field{"labels", {DType::int64, {}}});
  CHECK(expected_field(*make("task: regression")) == Field{"targets", {DType::float32, {2}}});
  CHECK(user_error([] { make("task: regression, loss: squared_error"); }) ==
        "x.yaml:1:56: model.loss is 'squared_error'; it must be one of mse, l1, huber");
  CHECK(user_error([] { make("loss: mse"); }).find("one of softmax_cross_entropy, squared_error") !=
        std::string::npos);
  const Config config = Config::parse(
      "model: {name: convnet, task: regression, layers: [{type: flatten}, {type: linear, units: 3}]}\n",
      "x.yaml");
  CHECK(user_error([&] {
          make_model(config.section("model"), Shape{4}, 2, {});
        }).ends_with("is [1,3] and the data has 2 targets; its last layer must be a value [1, targets]"));
}

}  // namespace plexaura::testing::regression_test
