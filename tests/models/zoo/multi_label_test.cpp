#include "models/zoo/multi_label.h"

#include <doctest/doctest.h>

#include "backends/registry.h"
#include "tests/support/error_text.h"
#include "training/data/loader.h"
#include "training/data/tensor_dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::multi_label_test {

namespace {

std::unique_ptr<Model> make(const std::string& keys) {
  const Config config = Config::parse("model: {name: mlp, hidden: [], " + keys + "}\n", "x.yaml");
  auto model = make_model(config.section("model"), Shape{3}, 3, {});
  config.check_all_used();
  return model;
}

// Evaluates a model whose outputs are its inputs.
Validation validate_outputs(ArenaTypes types = ArenaTypes::all(DType::float32), std::int64_t batch_size = 4) {
  const auto model = make("task: multi_label");
  const auto backend = open_backend("cpu");
  ParameterStore store = make_store(*model, DType::float32, 1);
  store.set_types(types);
  store.write("fc1.weight", Tensor::of<float>({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}));
  const auto data = tensor_dataset(
      {{"samples", Tensor::of<float>({4, 3}, {0.5, -1, 2, 1, 0.25, -0.5, -1.5, 0, 1, 0.125, 0.25, 0.5})},
       {"targets", Tensor::of<float>({4, 3}, {0, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0})}});
  SingleProcess alone;
  Evaluator evaluator(builder_of(*model), data->fields(), store, *backend, alone);
  return validate(evaluator, data, alone, {.batch_size = batch_size});
}

}  // namespace

// The predicted labels are 101, 110, 001 and 111, and the true ones 011, 100, 001 and 010.
TEST_CASE("the figures of labels are those of their definitions, whatever the batches are") {
  for (const std::int64_t batch_size : {4, 3, 1}) {
    const Validation found = validate_outputs(ArenaTypes::all(DType::float32), batch_size);
    const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-6); };
    CHECK(found.loss == near(0.62858186331296));  // torch.nn.BCEWithLogitsLoss()
    CHECK(value_of("accuracy", found.metrics) == near(7.0 / 12));
    CHECK(value_of("exact_match", found.metrics) == near(1.0 / 4));
    CHECK(value_of("f1_micro", found.metrics) == near(2 * 4.0 / (8 + 5)));
    CHECK(value_of("f1_macro", found.metrics) == near((0.5 + 0.5 + 0.8) / 3));
    const std::vector<LabelFigures> labels = label_figures(found.totals);
    REQUIRE(labels.size() == 3);
    CHECK(labels[0].precision == near(1.0 / 3));
    CHECK(labels[0].recall == 1);
    CHECK(labels[0].f1 == near(0.5));
    CHECK(labels[1].precision == near(0.5));
    CHECK(labels[1].recall == near(0.5));
    CHECK(labels[2].precision == near(2.0 / 3));
    CHECK(labels[2].f1 == near(0.8));
  }
}

TEST_CASE("the figures of labels exist in mixed precision") {
  CHECK(value_of("f1_micro", validate_outputs(ArenaTypes::mixed(DType::bfloat16)).metrics) ==
        doctest::Approx(8.0 / 13));
}

TEST_CASE("a label that is neither predicted nor true has figures of 0") {
  const std::vector<LabelFigures> labels = label_figures(std::array<double, 3>{0, 0, 0});
  CHECK(labels[0].precision == 0);
  CHECK(labels[0].recall == 0);
  CHECK(labels[0].f1 == 0);
}

TEST_CASE("a model of several labels reads targets, and has one loss") {
  const auto model = make("task: multi_label");
  CHECK(expected_field(*model) == Field{"targets", {DType::float32, {3}}});
  CHECK(model->info().loss == Loss::binary_cross_entropy);
  CHECK(user_error([] { make("task: multi_label, outputs: sigmoid"); })
            .ends_with("model.outputs is sigmoid, and model.task is multi_label, whose loss and predictions "
                       "apply a sigmoid "
                       "to the outputs themselves; leave it out"));
  CHECK(user_error([] { make("task: multi_label, loss: mse"); }) ==
        "x.yaml:1:57: model.loss has no effect here, because model.task is multi_label; remove it, or choose "
        "classification, regression, reconstruction or segmentation");
  for (const char* key : {"label_smoothing: 0.1", "class_weights: [1, 2, 3]"})
    for (const char* task : {"multi_label", "regression"})
      CHECK(user_error([&] { make(fmt::format("task: {}, {}", task, key)); })
                .ends_with(fmt::format("has no effect here, because model.task is {}; remove it, or choose "
                                       "classification or segmentation",
                                       task)));
}

}  // namespace plexaura::testing::multi_label_test
