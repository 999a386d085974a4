#include "models/zoo/model.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <iterator>

#include "backends/registry.h"
#include "tests/support/error_text.h"
#include "training/data/loader.h"
#include "training/data/tensor_dataset.h"
#include "training/programs/evaluation.h"

namespace plexaura::testing::model_test {

namespace {

std::unique_ptr<Model> make(const std::string& keys, std::vector<double> balanced = {}) {
  const Config config = Config::parse("model: {name: mlp, hidden: []" + keys + "}\n", "x.yaml");
  auto model = make_model(config.section("model"), Shape{3}, 3, {}, {}, std::move(balanced));
  config.check_all_used();
  return model;
}

// Returns the validation loss of a model whose outputs are its inputs.
double loss_of(Model& model, std::int64_t batch_size, std::vector<std::pair<std::string, Tensor>> more = {}) {
  const auto backend = open_backend("cpu");
  ParameterStore store = make_store(model, DType::float32, 1);
  store.write("fc1.weight", Tensor::of<float>({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}));
  std::vector<std::pair<std::string, Tensor>> fields{
      {"samples", Tensor::of<float>({4, 3}, {0.5, -1, 2, 1, 0.25, -0.5, -1.5, 0, 1, 0.1F, 0.2F, 0.3F})},
      {"labels", Tensor::of<std::int64_t>({4}, {2, 0, 1, 0})}};
  std::ranges::move(more, std::back_inserter(fields));
  const auto data = tensor_dataset(fields);
  SingleProcess alone;
  Evaluator evaluator(builder_of(model), data->fields(), store, *backend, alone);
  return validate(evaluator, data, alone, {.batch_size = batch_size}).loss;
}

}  // namespace

// The expected losses are those of torch.nn.CrossEntropyLoss(weight, label_smoothing) over all four samples.
TEST_CASE("class weights and label smoothing give the loss of PyTorch, whatever the batches are") {
  const std::vector<std::pair<std::string, double>> expected{
      {"", 0.835692230148599},
      {", label_smoothing: 0.1", 0.893608896815265},
      {", class_weights: [1, 4, 0.5]", 1.12872774889598},
      {", class_weights: [1, 4, 0.5], label_smoothing: 0.1", 1.20116384099751}};
  for (const auto& [keys, loss] : expected) {
    CAPTURE(keys);
    for (const std::int64_t batch_size : {4, 3, 1})
      CHECK(loss_of(*make(keys), batch_size) == doctest::Approx(loss).epsilon(1e-6));
  }
  CHECK(loss_of(*make(", class_weights: balanced", {1, 4, 0.5}), 4) ==
        doctest::Approx(1.12872774889598).epsilon(1e-6));
}

// The expected losses are those of torch.nn.CrossEntropyLoss(weight, label_smoothing) for the targets
// share * one_hot(labels) + (1 - share) * one_hot(partner_labels).
TEST_CASE("the loss of mixed samples is that of PyTorch for targets") {
  const std::vector<std::pair<std::string, double>> expected{
      {"", 1.0919422301486},
      {", label_smoothing: 0.1", 1.12423389681527},
      {", class_weights: [1, 4, 0.5], label_smoothing: 0.1", 2.81904090880231}};
  for (const auto& [keys, loss] : expected) {
    CAPTURE(keys);
    for (const std::int64_t batch_size : {4, 3, 1})
      CHECK(loss_of(*make(keys), batch_size,
                    {{"partner_labels", Tensor::of<std::int64_t>({4}, {0, 2, 1, 1})},
                     {"label_share", Tensor::of<float>({4}, {0.75F, 0.5F, 1, 0})}}) ==
            doctest::Approx(loss).epsilon(1e-6));
  }
}

TEST_CASE("wrong class weights and label smoothing are refused") {
  const auto refusal = [](const std::string& keys) { return user_error([&] { make(", " + keys); }); };
  CHECK(refusal("class_weights: [1, 2, 1e39]")
            .ends_with("model.class_weights has the weight 1e+39, which is infinite in "
                       "float32; give a smaller number"));
  CHECK(refusal("class_weights: [1, 2, 1e-46]").ends_with("which is 0 in float32; give a larger number"));
  CHECK(refusal("class_weights: [1, 2]") ==
        "x.yaml:1:47: model.class_weights has 2 numbers and the data has 3 classes; give one for each class");
  CHECK(refusal("class_weights: [0, 0, 0]")
            .ends_with(
                "model.class_weights is 0 for every class, so that there is no loss; give one of them more"));
  CHECK(refusal("class_weights: [1, -2, 1]")
            .ends_with("model.class_weights[1] is '-2'; it must be a number >= 0"));
  CHECK(refusal("class_weights: equal")
            .ends_with("model.class_weights is 'equal'; it must be a list of numbers >= 0, or balanced"));
  CHECK(refusal("label_smoothing: 1")
            .ends_with("model.label_smoothing is '1'; it must be a number >= 0 and < 1"));
  for (const std::string key : {"class_weights: [1, 2, 3]", "label_smoothing: 0.1"}) {
    CHECK(refusal("loss: squared_error, " + key)
              .ends_with(" has no effect here, because model.loss is squared_error; remove it, or choose "
                         "softmax_cross_entropy"));
    CHECK(refusal("task: regression, " + key)
              .ends_with(" has no effect here, because model.task is regression; remove it, or choose "
                         "classification or segmentation"));
  }
}

TEST_CASE("balanced weights that are not known are an error of the loss only") {
  const auto model = make(", class_weights: balanced");
  CHECK(user_error([&] { loss_of(*model, 4); }) ==
        "model.class_weights is balanced, and the training samples of each class were not counted here; list "
        "the "
        "weights, or give them to make_model()");
}

}  // namespace plexaura::testing::model_test
