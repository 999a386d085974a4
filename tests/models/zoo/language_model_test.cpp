#include "models/zoo/language_model.h"

#include <doctest/doctest.h>

#include "backends/registry.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"
#include "training/data/loader.h"
#include "training/data/tensor_dataset.h"
#include "training/data/text/token_windows.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::language_model_test {

namespace {

std::unique_ptr<Model> make(const std::string& layers, std::int64_t positions = 3, std::int64_t tokens = 4,
                            const std::string& name = "convnet") {
  const Config config =
      Config::parse("model: {name: " + name + ", task: language_model, layers: " + layers + "}\n", "x.yaml");
  auto model = make_model(config.section("model"), Shape{positions}, tokens, {});
  config.check_all_used();
  return model;
}

std::string error_of(const std::string& layers) {
  return user_error([&] { make(layers); });
}

// Evaluates a model whose logits are those of the row that a token names, on two windows.
Validation validate_rows(std::int64_t batch_size, ArenaTypes types = ArenaTypes::all(DType::float32)) {
  const auto model = make("[{type: embedding, units: 4}]");
  const auto backend = open_backend("cpu");
  ParameterStore store = make_store(*model, DType::float32, 1);
  store.set_types(types);
  store.write("embedding1.weight", pattern({4, 4}).cast(DType::float32));
  const auto data =
      tensor_dataset({{"samples", Tensor::of<std::int64_t>({2, 3}, {0, 1, 2, 3, 1, 1})},
                      {"targets", Tensor::of<std::int64_t>({2, 3}, {1, 3, no_target, 0, 2, 1})}});
  SingleProcess alone;
  Evaluator evaluator(builder_of(*model), data->fields(), store, *backend, alone);
  return validate(evaluator, data, alone, {.batch_size = batch_size});
}

}  // namespace

TEST_CASE("loss, perplexity and accuracy are over all positions with a target, whatever the batches are") {
  for (const std::int64_t batch_size : {2, 1}) {
    const Validation found = validate_rows(batch_size);
    const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-6); };
    CHECK(found.loss ==
          near(1.4134471826713));  // torch.nn.functional.cross_entropy(), whose ignore_index is -100
    CHECK(value_of("perplexity", found.metrics) == near(4.1100992748096));
    CHECK(value_of("accuracy", found.metrics) == near(2 / 5.0));
  }
}

TEST_CASE("the figures of a language model exist in mixed precision") {
  const Validation found = validate_rows(2, ArenaTypes::mixed(DType::bfloat16));
  CHECK(value_of("perplexity", found.metrics) == doctest::Approx(4.1100992748096).epsilon(1e-2));
  CHECK(value_of("accuracy", found.metrics) == doctest::Approx(2 / 5.0));
}

TEST_CASE("a language model reads tokens, and predicts one at each position") {
  const auto model = make("[{type: embedding, units: 8}, {type: lstm, units: 5}, {type: linear}]");
  CHECK(expected_field(*model) == Field{"targets", {DType::int64, {3}}});
  Graph graph;
  const Node y = (*model)(graph.input("x", {DType::int64, {2, 3}}));
  CHECK(y.type() == TensorType{DType::float32, {2, 3, 4}});
}

TEST_CASE("layers that do not fit a language model are refused") {
  CHECK(error_of("[{type: embedding, units: 8}, {type: mean_of_steps}, {type: linear}]")
            .starts_with("x.yaml:1:91: model.layers[1].type is mean_of_steps, and model.task is "
                         "language_model, in which "
                         "a step may not see the tokens after it; choose one of linear, relu, "));
  CHECK(error_of("[{type: embedding, units: 8}, {type: transformer_encoder, heads: 2}, {type: linear}]")
            .ends_with("causal is false, and model.task is language_model, in which a step may not see the "
                       "tokens after "
                       "it; set it to true"));
  CHECK(error_of("[{type: embedding, units: 8}, {type: gru, units: 5, bidirectional: true}, {type: linear}]")
            .ends_with(
                "bidirectional is true, and model.task is language_model, in which a step may not see the "
                "tokens after it; set it to false"));
  CHECK(error_of(
            "[{type: embedding, units: 8}, {type: residual, layers: [{type: conv, channels: 3, kernel: 1}]}]")
            .find("layers[0].type is conv, and model.task is language_model") != std::string::npos);
  CHECK(error_of("[{type: embedding, units: 8}]")
            .ends_with("the model's output for one sample is [1,3,8] and the data has 4 tokens; its last "
                       "layer must be a "
                       "value [1, positions, tokens]"));
  CHECK(user_error([] {
          const Config config =
              Config::parse("model: {name: mlp, task: language_model, hidden: []}\n", "x.yaml");
          make_model(config.section("model"), Shape{3}, 4, {});
        }) ==
        "x.yaml:1:26: model.task is language_model, and model.name is mlp, which reads numbers and no text; "
        "set "
        "that to convnet, and list the layers");
}

}  // namespace plexaura::testing::language_model_test
