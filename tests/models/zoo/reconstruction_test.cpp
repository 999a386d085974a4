#include "models/zoo/reconstruction.h"

#include <cmath>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "tests/support/error_text.h"
#include "training/data/loader.h"
#include "training/data/tensor_dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::reconstruction_test {

namespace {

std::unique_ptr<Model> make(const std::string& keys, const Shape& sample = {1, 2, 1}) {
  const Config config = Config::parse("model: {task: reconstruction, " + keys + "}\n", "x.yaml");
  auto model = make_model(config.section("model"), sample, 10, {});
  config.check_all_used();
  return model;
}

// Evaluates a model whose outputs are twice its inputs, for three images of two pixels.
Validation validate_twice(const std::string& loss, std::int64_t batch_size, bool is_labelled = false) {
  const auto model = make("name: mlp, hidden: [], loss: " + loss);
  const auto backend = open_backend("cpu");
  ParameterStore store = make_store(*model, DType::float32, 1);
  store.write("fc1.weight", Tensor::of<float>({2, 2}, {2, 0, 0, 2}));
  const Tensor images = Tensor::of<std::uint8_t>({3, 1, 2, 1}, {0, 255, 51, 102, 204, 0});
  std::vector<std::pair<std::string, Tensor>> fields{{"samples", images}};
  if (is_labelled) fields.emplace_back("labels", Tensor::of<std::int64_t>({3}, {0, 1, 2}));
  const auto data = tensor_dataset(fields);
  SingleProcess alone;
  Evaluator evaluator(builder_of(*model), data->fields(), store, *backend, alone);
  return validate(evaluator, data, alone, {.batch_size = batch_size});
}

}  // namespace

// The pixels are 0, 1, 0.2, 0.4, 0.8 and 0, and the outputs twice these. The cross-entropy is that of
// torch.nn.BCEWithLogitsLoss.
TEST_CASE("the loss of a reconstruction is a mean over samples and pixels from 0 to 1") {
  for (const std::int64_t batch_size : {3, 2}) {
    const Validation squared = validate_twice("mse", batch_size);
    CHECK(squared.loss == doctest::Approx(1.84 / 6).epsilon(1e-6));
    CHECK(value_of("rmse", squared.metrics) == doctest::Approx(std::sqrt(1.84 / 6)).epsilon(1e-6));
    CHECK(value_of("psnr", squared.metrics) == doctest::Approx(10 * std::log10(6 / 1.84)).epsilon(1e-6));
    CHECK(validate_twice("l1", batch_size).loss == doctest::Approx(2.4 / 6).epsilon(1e-6));
    CHECK(validate_twice("huber", batch_size).loss == doctest::Approx(0.92 / 6).epsilon(1e-6));
    const Validation entropy = validate_twice("binary_cross_entropy", batch_size);
    CHECK(entropy.loss == doctest::Approx(0.616873171899822).epsilon(1e-6));
    CHECK(value_of("rmse", entropy.metrics) == doctest::Approx(0.35549767079320543).epsilon(1e-6));
  }
}

TEST_CASE("a reconstruction does not read labels") {
  CHECK(validate_twice("mse", 3, true).loss == validate_twice("mse", 3).loss);
  CHECK(expected_field(*make("name: mlp, hidden: [4]")) == Field{"samples", {DType::uint8, {1, 2, 1}}});
}

TEST_CASE("the images to reconstruct may be others than the samples") {
  const auto model = make("name: mlp, hidden: []");
  const auto backend = open_backend("cpu");
  ParameterStore store = make_store(*model, DType::float32, 1);
  store.write("fc1.weight", Tensor::of<float>({2, 2}, {1, 0, 0, 1}));
  const auto data = tensor_dataset({{"samples", Tensor::of<std::uint8_t>({2, 1, 2, 1}, {0, 255, 51, 102})},
                                    {"targets", Tensor::of<std::uint8_t>({2, 1, 2, 1}, {255, 255, 0, 102})}});
  SingleProcess alone;
  Evaluator evaluator(builder_of(*model), data->fields(), store, *backend, alone);
  CHECK(validate(evaluator, data, alone, {.batch_size = 2}).loss == doctest::Approx(1.04 / 4).epsilon(1e-6));
}

TEST_CASE("a reconstruction has as many outputs as a sample has values, in any shape") {
  CHECK(make("name: mlp, hidden: [4]")->classes() == 2);
  CHECK(make("name: convnet, layers: [{type: conv_transpose, channels: 1, kernel: 1}]")->classes() == 2);
  CHECK(user_error([] { make("name: convnet, layers: [{type: flatten}, {type: linear, units: 3}]"); })
            .ends_with(
                "the model's output for one sample is [1,3] and model.task is reconstruction; its last layer "
                "must make as many values as the sample [1,2,1] has, 2"));
  CHECK(user_error([] {
          make("name: mlp, hidden: [4], loss: squared_error");
        }).find("mse, l1, huber, binary_cross_entropy") != std::string::npos);
  CHECK(user_error([] {
          make("name: mlp, hidden: [4], loss: binary_cross_entropy, outputs: sigmoid");
        }).find("model.task is reconstruction, whose loss and predictions apply a sigmoid") !=
        std::string::npos);
  CHECK(make("name: mlp, hidden: [4], outputs: sigmoid")->classes() == 2);
}

}  // namespace plexaura::testing::reconstruction_test
