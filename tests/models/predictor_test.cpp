#include "models/predictor.h"

#include <doctest/doctest.h>

#include "models/layers/functional.h"
#include "models/layers/linear.h"
#include "models/zoo/pixel_scale.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/checkpoint.h"

namespace plexaura::testing::predictor_test {

namespace {

const char* const yaml = "model: {name: mlp, hidden: [5]}\n";

// Linear with a dropout that would make every call another.
class Net : public Module {
 public:
  void members(MemberVisitor& visit) override { visit("fc", fc); }
  Node operator()(Operand x) { return fc(dropout(x)); }
  layers::Linear fc{2, 1, {.bias = false}};
  layers::Dropout dropout;
};

}  // namespace

TEST_CASE("a predictor needs a model") {
  Net net;
  ParameterStore store = make_store(net, DType::float64);
  CHECK(user_error([&] {
          Predictor(Predictor::Forward(), store, test_backend());
        }).starts_with("the Predictor has no model"));
}

TEST_CASE("a predictor runs a model in inference, for any number of samples, on the weights as they are") {
  Net net;
  ParameterStore store = make_store(net, DType::float64);
  store.write("fc.weight", Tensor::of<double>({1, 2}, {1, 10}));
  Predictor predict([&](Node x) { return net(x); }, store, test_backend());
  CHECK(predict(Tensor::of<double>({1, 2}, {1, 2})) == Tensor::of<double>({1, 1}, {21}));
  CHECK(predict(Tensor::of<float>({2, 2}, {1, 2, 3, 4})) == Tensor::of<double>({2, 1}, {21, 43}));
  store.write("fc.weight", Tensor::of<double>({1, 2}, {2, 20}));
  CHECK(predict(Tensor::of<float>({2, 2}, {1, 2, 3, 4})) == Tensor::of<double>({2, 1}, {42, 86}));
  // Also after the store moved.
  store.place(Placement(store.placement()), test_backend());
  CHECK(predict(Tensor::of<double>({1, 2}, {1, 2})) == Tensor::of<double>({1, 1}, {42}));
}

TEST_CASE("a predictor of a YAML file gives the logits of the model that was saved") {
  const TemporaryFolder folder;
  const Config config = Config::parse(yaml, "net.yaml");
  const auto model = make_model(config, Shape{4}, 3);
  ParameterStore store = make_store(*model, DType::float32, 5);
  save_weights(folder / "weights", store);
  Predictor here([&](Node x) { return (*model)(x); }, store, test_backend());
  Predictor there(config, folder / "weights", Shape{4}, 3, test_backend());
  const Tensor samples = Tensor::of<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(there(samples) == here(samples));
  CHECK(there(samples).shape() == Shape{2, 3});
  CHECK(user_error([&] {
          Predictor(config, folder / "weights", Shape{4}, 2, test_backend());
        }).find("'fc2.weight'") != std::string::npos);
}

TEST_CASE("a model normalises images that are bytes as the section data says, and takes floats as they are") {
  const TemporaryFolder folder;
  const Config config = Config::parse(
      "model: {name: mlp, hidden: [5]}\ndata: {format: image_folder, mean: [0.5, 0.25, 0], stddev: [0.5, 1, "
      "2]}\n",
      "net.yaml");
  const Shape sample{3, 1, 2};
  for (const DType dtype : {DType::float32, DType::float64}) {
    const auto model = make_model(config, sample, 3);
    ParameterStore store = make_store(*model, dtype, 5);
    Predictor predict([&](Node x) { return (*model)(x); }, store, test_backend());
    const Tensor bytes = Tensor::of<std::uint8_t>({1, 3, 1, 2}, {0, 255, 51, 255, 0, 102});
    const Tensor floats = Tensor::of<double>({1, 3, 1, 2}, {-1, 1, -0.05, 0.75, 0, 0.2});
    const Tensor expected = predict(floats);
    const Tensor logits = predict(bytes);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(logits.to_doubles()[i] == doctest::Approx(expected.to_doubles()[i]).epsilon(1e-5));
    if (dtype != DType::float32) continue;
    save_weights(folder / "weights", store);
    CHECK(Predictor(config, folder / "weights", sample, 3, test_backend())(bytes) == logits);
  }
}

}  // namespace plexaura::testing::predictor_test
