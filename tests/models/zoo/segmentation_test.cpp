#include "models/zoo/segmentation.h"

#include <cmath>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "tests/support/error_text.h"
#include "training/data/loader.h"
#include "training/data/tensor_dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::segmentation_test {

namespace {

std::unique_ptr<Model> make(const std::string& keys, const Shape& sample = {3, 2, 2}) {
  const Config config = Config::parse("model: {task: segmentation, " + keys + "}\n", "x.yaml");
  auto model = make_model(config.section("model"), sample, 3, {});
  config.check_all_used();
  return model;
}

// Evaluates a model whose outputs are its inputs, for two images of 2x2 pixels and 3 classes, of which one pixel has the
// ignored class.
Validation validate_outputs(const std::string& keys, std::int64_t batch_size,
                            ArenaTypes types = ArenaTypes::all(DType::float32), std::uint8_t ignored = 255) {
  const auto model = make("name: convnet, layers: [{type: conv, channels: 3, kernel: 1}], ignored_class: " +
                          std::to_string(ignored) + keys);
  const auto backend = open_backend("cpu");
  ParameterStore store = make_store(*model, DType::float32, 1);
  store.set_types(types);
  store.write("conv1.weight", Tensor::of<float>({3, 3, 1, 1}, {1, 0, 0, 0, 1, 0, 0, 0, 1}));
  store.write("conv1.bias", Tensor::of<float>({3}, {0, 0, 0}));
  const auto data =
      tensor_dataset({{"samples", Tensor::of<float>({2, 3, 2, 2}, {1,  -0.5, 0.25, 2, 0,   1.5, 0.75, -1,
                                                                   -1, 0.5,  0.5,  0, 0.5, 0,   1,    -2,
                                                                   1,  0.25, -1,   0, 0,   2,   0,    1})},
                      {"targets", Tensor::of<std::uint8_t>({2, 2, 2}, {0, 1, 2, ignored, 1, 2, 0, 2})}});
  SingleProcess alone;
  Evaluator evaluator(builder_of(*model), data->fields(), store, *backend, alone);
  return validate(evaluator, data, alone, {.batch_size = batch_size});
}

std::string error_of(const std::string& keys, const Shape& sample = {3, 2, 2}) {
  return user_error([&] { make(keys, sample); });
}

}  // namespace

// The losses are those of torch.nn.functional.cross_entropy(outputs, targets, weight, ignore_index=255, label_smoothing).
TEST_CASE("loss, accuracy and mean IoU are over all pixels with a class, whatever the batches are") {
  for (const std::int64_t batch_size : {2, 1}) {
    const auto near = [](double value) { return doctest::Approx(value).epsilon(1e-6); };
    const Validation found = validate_outputs("", batch_size);
    CHECK(found.loss == near(0.520112156867981));
    CHECK(value_of("pixel_accuracy", found.metrics) == near(6 / 7.0));
    CHECK(value_of("mean_iou", found.metrics) == near((1 + 2 / 3.0 + 2 / 3.0) / 3));
    CHECK(class_ious(found.totals, 255)[1] == near(2 / 3.0));
    CHECK(validate_outputs(", class_weights: [1, 2, 0.5]", batch_size).loss == near(0.5146415829658508));
    CHECK(validate_outputs(", class_weights: [1, 2, 0.5], label_smoothing: 0.1", batch_size).loss ==
          near(0.6142562627792358));
  }
}

// The figures are those of numpy over the pixels whose label is not 1: (labels == c) & (outputs == c), and |. One pixel of
// class 2 gets the class 1.
TEST_CASE("an ignored class below the number of classes has no IoU, and does not count in the mean") {
  const Validation found = validate_outputs("", 2, ArenaTypes::all(DType::float32), 1);
  CHECK(value_of("pixel_accuracy", found.metrics) == doctest::Approx(0.8));
  CHECK(value_of("mean_iou", found.metrics) == doctest::Approx((1 + 2 / 3.0) / 2));
  const std::vector<double> ious = class_ious(found.totals, 1);
  CHECK(ious[0] == doctest::Approx(1));
  CHECK(std::isnan(ious[1]));
  CHECK(ious[2] == doctest::Approx(2 / 3.0));
}

TEST_CASE("the figures of a segmentation exist in mixed precision") {
  const Validation found = validate_outputs("", 2, ArenaTypes::mixed(DType::bfloat16));
  CHECK(found.loss == doctest::Approx(0.520112156867981).epsilon(1e-2));
  CHECK(value_of("pixel_accuracy", found.metrics) == doctest::Approx(6 / 7.0));
}

TEST_CASE("a class that occurs nowhere has no IoU, and does not count in the mean") {
  // Rows: the class; columns: the predicted class; the last row: ignored pixels.
  const std::vector<double> ious = class_ious(std::vector<double>{3, 1, 0, 0, 2, 0, 0, 0, 0, 9, 9, 9}, {});
  CHECK(ious[0] == doctest::Approx(3 / 4.0));
  CHECK(ious[1] == doctest::Approx(2 / 3.0));
  CHECK(std::isnan(ious[2]));
}

TEST_CASE("a segmentation has a score for each class and pixel") {
  const auto unet = make("name: unet, depth: 1, width: 2", {1, 4, 6});
  CHECK(expected_field(*unet) == Field{"targets", {DType::uint8, {4, 6}}});
  Graph graph(Mode::inference);
  CHECK((*unet)(graph.input("x", {DType::float32, {2, 1, 4, 6}})).shape() == Shape{2, 3, 4, 6});
  CHECK(
      error_of("name: mlp, hidden: []")
          .ends_with("the model's output for one sample is [1,3] and model.task is segmentation; for a "
                     "sample [3,2,2] it must be [1, 3 classes, height, width], as of a unet or of a convnet "
                     "whose layers keep height and width"));
  CHECK(error_of("name: unet, depth: 1, class_weights: [1, 2]")
            .ends_with("model.class_weights has 2 numbers and the data has 3 classes; give one for each "
                       "class"));
  CHECK(error_of("name: unet, depth: 1, ignored_class: 256").find("model.ignored_class is '256'") !=
        std::string::npos);
  CHECK(error_of("name: unet, depth: 1, loss: mse").find("softmax_cross_entropy") != std::string::npos);
}

}  // namespace plexaura::testing::segmentation_test
